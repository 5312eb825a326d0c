"""Data sets for comparisons with the algorithm written out, each in one layout.

That dense rows and CSR give the same, for any data, is a contract of its own.
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
