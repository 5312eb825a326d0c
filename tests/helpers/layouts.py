"""Data sets for comparisons with slow references, each in one layout.

tests/contracts/test_layouts.py compares layouts.
"""

import numpy as np
import pytest
from scipy import sparse

from helpers.data import gaussian, mixed, scaled

datasets = pytest.mark.parametrize(
    ("data", "layout"),
    [
        pytest.param(gaussian, np.asarray, id="gaussian-dense"),
        pytest.param(mixed, sparse.csr_array, id="mixed-CSR"),
        pytest.param(scaled, np.asarray, id="scaled-dense"),
    ],
)
