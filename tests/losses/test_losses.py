"""The public losses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from aucmax import losses

rng = np.random.default_rng(0)
SCORE = np.round(rng.standard_normal(50), 1)
Y = (rng.random(50) < 0.3).astype(int)
V = rng.standard_normal(50)
CURVED = [name for name in losses.NAMES if name != "hinge"]


@pytest.mark.parametrize("name", losses.NAMES)
def test_weights_and_labels(name):
    weight = rng.integers(0, 3, 50)
    found = losses.gradient(name, Y, SCORE, weight)
    assert_array_equal(found, losses.gradient(name, 2 * Y - 1, SCORE.tolist(), weight))
    assert_array_equal(found[weight == 0], 0.0)
    copied = losses.value(name, Y.repeat(weight), SCORE.repeat(weight))
    assert losses.value(name, Y, SCORE, weight) == pytest.approx(copied, rel=1e-10)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)  # only differences count


@pytest.mark.parametrize("name", CURVED)
def test_second_derivatives(name):
    weight = rng.integers(0, 3, 50)
    args = name, Y, SCORE
    columns = [losses.hessian_product(*args, e, weight) for e in np.eye(50)]
    H = np.array(columns)
    assert_allclose(H, H.T, atol=1e-10)
    assert_allclose(np.diag(H), losses.hessian_diagonal(*args, weight), atol=1e-10)
    assert_allclose(H.sum(axis=0), 0.0, atol=1e-8)
    if name != "sigmoid":
        assert np.linalg.eigvalsh(H)[0] > -1e-9


def test_errors():
    with pytest.raises(ValueError, match="square"):
        losses.value("spam", Y, SCORE)
    with pytest.raises(ValueError, match="loss='hinge'"):
        losses.hessian_diagonal("hinge", Y, SCORE)
    with pytest.raises(ValueError, match="both classes"):
        losses.value("square", np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        losses.value("square", [0, 1], [0.0, np.nan])
    with pytest.raises(ValueError, match="shape"):
        losses.value("square", [0, 1], [0.0])
    with pytest.raises(ValueError, match="shape"):
        losses.hessian_product("square", [0, 1], [0.0, 1.0], [1.0])
