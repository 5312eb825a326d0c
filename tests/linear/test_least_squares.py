"""The exact solver against brute force over all pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.linear_model import LinearRegression

import aucmax
from aucmax import LeastSquaresAUC, Moments
from aucmax.linear import least_squares as leastsquares
from helpers.data import closed_form, gaussian, mixed, pairwise, scaled, scattered, wide

LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "CSR": sparse.csr_array,
}
SOLVERS = {"moments": {}, "cg": {"solver": "cg", "tol": 1e-14}}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("l2", [0.0, 1e-3, 1.0])
def test_the_gradient_of_all_pairs_is_zero(l2, layout, solver):
    X, y = scaled(60, 4, decades=0.5)
    X = X.astype(np.float32).astype(float)
    weight = np.random.default_rng(0).random(60) + 0.1
    weight[::7] = 0.0
    for w in (None, weight):
        model = LeastSquaresAUC(l2, **SOLVERS[solver]).fit(LAYOUTS[layout](X), y, w)
        at = model.coef_[0]
        slope = approx_fprime(at, lambda v, w=w: pairwise(v, X, y, l2, 0.0, w), 1e-6)
        far = approx_fprime(0 * at, lambda v, w=w: pairwise(v, X, y, l2, 0.0, w), 1e-6)
        assert np.abs(slope).max() < 1e-4 * np.abs(far).max()
        assert_allclose(at, closed_form(X, y, l2, w), rtol=1e-9, atol=1e-11)


def test_it_is_least_squares_on_all_pairs():
    X, y = gaussian(50, 3)
    pairs = (X[y == 1][:, None] - X[y == 0]).reshape(-1, 3)
    expected = LinearRegression(fit_intercept=False).fit(pairs, np.ones(len(pairs)))
    assert_allclose(LeastSquaresAUC(0.0).fit(X, y).coef_[0], expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("l1", [0.01, 0.2])
def test_no_direction_is_downhill_with_l1(l1):
    X, y = gaussian(60, 5)
    model = LeastSquaresAUC(1e-3, l1=l1).fit(X, y)
    w = model.coef_[0]
    here = pairwise(w, X, y, 1e-3, l1)
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-4):
        for step in rng.standard_normal((200, 5)) * size:
            assert pairwise(w + step, X, y, 1e-3, l1) >= here - 1e-13
    if l1 == 0.2:
        assert np.any(w == 0.0)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_stream_is_exact_in_any_order(layout):
    X, y = mixed(400)
    X = X + 50.0
    expected = LeastSquaresAUC().fit(LAYOUTS[layout](X), y)
    order = np.random.default_rng(0).permutation(400)
    model = LeastSquaresAUC()
    for part in np.array_split(order, 13):
        model.partial_fit(LAYOUTS[layout](X[part]), y[part], classes=[0, 1])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-8, atol=1e-11)
    assert_allclose(model.intercept_, expected.intercept_, rtol=1e-8)


def test_moments_of_other_machines():
    X, y = gaussian(300, 4)
    parts = [Moments.of(X[k::20], y[k::20]) for k in range(20)]
    model = LeastSquaresAUC().fit_moments(sum(parts[1:], parts[0]), ["no", "yes"])
    expected = LeastSquaresAUC().fit(X, y)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-10)
    assert_allclose(model.decision_function(X), expected.decision_function(X))
    assert_array_equal(model.predict(X), np.array(["no", "yes"])[expected.predict(X)])
    # And the stream goes on from there.
    model = LeastSquaresAUC().fit_moments(sum(parts[1:-1], parts[0]))
    model.partial_fit(X[19::20], y[19::20])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-10)


def test_moments_that_do_not_do():
    X, y = gaussian(30, 4)
    everything, model = Moments.of(X, y), LeastSquaresAUC()
    for side, counts in ((1, "9 positive and 0 negative"), (0, "0 positive and 21")):
        with pytest.raises(ValueError, match=rf"{counts}.*both classes"):
            model.fit_moments(Moments.of(X[y == side], y[y == side]))
    with pytest.raises(ValueError, match="0 positive and 0 negative"):
        model.fit_moments(Moments.empty(4))
    for classes in ([0], [0, 1, 2], [1, 1], 1):
        with pytest.raises(ValueError, match="two different labels"):
            model.fit_moments(everything, classes)
    with pytest.raises(ValueError, match="not finite"):
        model.fit_moments(everything._replace(mean=everything.mean * np.inf))
    assert not hasattr(model, "coef_")


def test_fit_forgets_and_partial_fit_does_not():
    X, y = gaussian(100, 3)
    model = LeastSquaresAUC().partial_fit(X, y).fit(X[:50], y[:50])
    assert_allclose(model.coef_, LeastSquaresAUC().fit(X[:50], y[:50]).coef_)
    model.partial_fit(X[50:], y[50:])
    assert_allclose(model.coef_, LeastSquaresAUC().fit(X, y).coef_, rtol=1e-10)


def test_auto_takes_conjugate_gradients_when_they_are_less_work(monkeypatch):
    X, y = wide()
    model = LeastSquaresAUC().fit(X, y)
    assert not hasattr(model, "state_")
    with pytest.raises(ValueError, match=r'no moments.*solver="moments"'):
        model.partial_fit(X, y)
    X, y = scattered(300, 50, density=0.02)
    assert hasattr(LeastSquaresAUC().fit(X, y), "state_")
    assert hasattr(LeastSquaresAUC().fit(sparse.csr_array(X), y), "state_")
    monkeypatch.setattr(leastsquares, "_ROUNDS", 1)
    sparser = LeastSquaresAUC(0.1, tol=1e-13).fit(sparse.csr_array(X), y)
    assert not hasattr(sparser, "state_")
    assert_allclose(sparser.coef_[0], closed_form(X, y, 0.1), rtol=1e-9, atol=1e-12)
    # Back to moments: what is left of the other solver must not be in the way.
    monkeypatch.setattr(leastsquares, "_ROUNDS", 10**6)
    sparser.fit(sparse.csr_array(X), y).partial_fit(X, y)


def test_what_cg_cannot_do():
    X, y = gaussian(30, 3)
    with pytest.raises(ValueError, match="does not support l1"):
        LeastSquaresAUC(l1=0.1, solver="cg").fit(X, y)
    assert not hasattr(LeastSquaresAUC(solver="cg"), "partial_fit")


def test_cg_stops_where_the_noise_begins():
    X, y = gaussian(400, 30)
    exact = LeastSquaresAUC(solver="cg", tol=1e-12).fit(X, y)
    early = LeastSquaresAUC(solver="cg").fit(X, y)
    assert early.n_iter_ < exact.n_iter_
    assert abs(early.score(X, y) - exact.score(X, y)) < 0.01


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_that_are_not_there_may_hold_anything(solver):
    X, y = gaussian(80, 3)
    weight = np.ones(80)
    weight[5], X[5] = 0.0, np.nan
    here = weight > 0
    model = LeastSquaresAUC(**SOLVERS[solver]).fit(X, y, weight)
    expected = LeastSquaresAUC(**SOLVERS[solver]).fit(X[here], y[here])
    assert_allclose(model.coef_, expected.coef_, rtol=1e-10)


def test_saved_with_and_without_moments(tmp_path):
    X, y = gaussian(80, 3)
    for parameters in SOLVERS.values():
        model = LeastSquaresAUC(**parameters).fit(X, y)
        model.save(tmp_path / "model.aucmax")
        twin = aucmax.load(tmp_path / "model.aucmax")
        assert hasattr(twin, "state_") == hasattr(model, "state_")
        assert_array_equal(twin.coef_, model.coef_)
