"""Floats as text: Python's repr is the oracle."""

import numpy as np
import pytest

from aucmax.data.shortest import as_text

rng = np.random.default_rng(0)

POWERS = 2.0 ** np.arange(-1074, 1024)
DECIMAL = [
    float(f"{d}e{e}") for e in range(-324, 309) for d in (1, 2, 5, 99, 10**15 - 1)
]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan]), id="odd"),
        pytest.param(np.array([1e15, 1e16, 1e17, 1e-4, 1e-5, 0.1, 100.0]), id="forms"),
        pytest.param(POWERS, id="powers of two"),
        pytest.param(np.nextafter(POWERS, 0.0), id="below powers of two"),
        pytest.param(-np.nextafter(POWERS[:-1], np.inf), id="above powers of two"),
        pytest.param(np.array(DECIMAL), id="short decimals"),
        pytest.param(np.arange(1, 10_000).astype(np.uint64).view(float), id="tiny"),
        pytest.param(np.arange(-5_000, 5_000).astype(float), id="integers"),
        pytest.param(2.0**53 + np.arange(-2_000, 2_000) * 2.0, id="large integers"),
        pytest.param(rng.integers(0, 2**64, 50_000, np.uint64).view(float), id="bits"),
        pytest.param(rng.standard_normal(50_000), id="scores"),
        pytest.param(np.round(100 * rng.standard_normal(20_000), 2), id="cents"),
    ],
)
def test_is_repr(values):
    expected = "".join(f"{value!r}\n" for value in values.tolist())
    assert bytes(as_text(values)).decode() == expected
