"""Contract: ``partial_fit`` in any chunks is one call, and streams may change."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from aucmax import CBR, FSAUC, SAM, Chain, LeastSquaresAUC, Projection
from aucmax.base.ranker import LinearRanker
from aucmax.online.base import visits
from aucmax.storage.state import arrays
from contracts.estimators import (
    PLAIN,
    as_id,
    assert_close,
    assert_finite,
    assert_same,
    auc_of,
    online,
    seeded,
    strict,
    trained,
)
from helpers.data import gaussian, informative, mixed, scattered

patient = settings(deadline=None, max_examples=8, derandomize=True)


def in_chunks(estimator, X, y, cuts, layouts=(np.asarray,), weight=None):
    model = seeded(estimator)
    edges = [0, *sorted(cuts), len(y)]
    pieces = [(lo, hi) for lo, hi in pairwise(edges) if hi > lo]
    for k, (lo, hi) in enumerate(pieces):
        rows = layouts[k % len(layouts)](X[lo:hi])
        share = None if weight is None else weight[lo:hi]
        model.partial_fit(rows, y[lo:hi], classes=[0, 1], sample_weight=share)
    return model


cuts_of_60 = st.lists(st.integers(0, 60), max_size=6)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@online
def test_any_chunking_is_one_call(estimator, layout):
    X, y = mixed(60)
    weight = np.random.default_rng(0).random(60) + 0.5
    whole = in_chunks(estimator, X, y, [], (layout,), weight)

    @patient
    @given(cuts_of_60)
    def check(cuts):
        assert_same(in_chunks(estimator, X, y, cuts, (layout,), weight), whole)

    check()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@online
def test_rows_one_by_one(estimator, layout):
    X, y = mixed(700)  # long enough for two proximal maps
    whole = in_chunks(estimator, X, y, [], (layout,))
    # One by one at first, and about the rows 256 and 512, where such maps are due.
    cuts = [*range(1, 40), *range(250, 262), *range(506, 518)]
    assert_same(in_chunks(estimator, X, y, cuts, (layout,)), whole)


@online
def test_chunks_of_one_class(estimator):
    X, y = mixed(60)
    by_class = np.argsort(y, kind="stable")
    X, y = X[by_class], y[by_class]
    whole = in_chunks(estimator, X, y, [])
    zeros = int(np.sum(y == 0))
    assert_same(in_chunks(estimator, X, y, [zeros]), whole)
    assert_same(in_chunks(estimator, X, y, [5, zeros, zeros + 1]), whole)


@online
def test_chunks_may_switch_layout(estimator):
    X, y = mixed(60)
    whole = in_chunks(estimator, X, y, [])

    @patient
    @given(cuts_of_60)
    def check(cuts):
        layouts = (np.asarray, sparse.csr_array)
        assert_close(in_chunks(estimator, X, y, cuts, layouts), whole)

    check()


@online
def test_features_added_to_a_stream(estimator):
    """Features added in the middle of a stream count as if known from the start."""
    X, y = scattered(120, 12)
    X[:60, 7:] = 0.0
    X = sparse.csr_array(X)
    wide = in_chunks(estimator, X, y, [60], (sparse.csr_array,))
    model = seeded(estimator).partial_fit(X[:60, :7], y[:60], classes=[0, 1])
    model.resize(14)  # more than needed
    model.resize(12)
    assert_finite(model)
    assert model.decision_function(X[:60]).shape == (60,)
    if isinstance(model, LinearRanker):
        for part in arrays(model.state_).values():
            assert part.flags.forc  # else kernels are compiled again
    model.partial_fit(X[60:], y[60:])
    if isinstance(model, LinearRanker):
        assert_close(model, wide)
    elif not isinstance(
        getattr(model, "map", None), Projection
    ):  # it would have mixed the new features in
        score = wide.decision_function(X)
        assert_allclose(model.decision_function(X), score, rtol=1e-6, atol=1e-6)


@online
def test_chunks_larger_than_one_piece(estimator, monkeypatch):
    """The base class visits rows piece by piece; piece ends must not show."""
    monkeypatch.setattr("aucmax.online.base._PIECE", 64)
    monkeypatch.setattr("aucmax.online.base._MIN_RUNS", 20)  # runs of several rows
    X, y = gaussian(203, 2)
    pieces = [len(order) for order in visits(y + 1.0, None)]
    assert len(pieces) > 3
    assert sum(pieces) == 203
    assert_same(in_chunks(estimator, X, y, [99]), in_chunks(estimator, X, y, []))


@online
@strict
def test_a_prefix_of_one_class(estimator):
    X, y = gaussian(60)
    for label in (0, 1):
        only, rest = y == label, y != label
        model = seeded(estimator).partial_fit(X[only], y[only], classes=[0, 1])
        assert_array_equal(model.decision_function(X), 0.0)
        model.partial_fit(X[rest], y[rest])
        assert_finite(model)
        assert np.any(model.decision_function(X) != 0.0)


# The factor of a feature before it becomes active; CSR does not store zeros.
DORMANT = {
    "tiny-dense": (1e-6, np.asarray),
    "small-CSR": (1e-2, sparse.csr_array),
    "zero-dense": (0.0, np.asarray),
    "zero-CSR": (0.0, sparse.csr_array),
}


@pytest.mark.parametrize("asleep", DORMANT)
@pytest.mark.parametrize("informs", [True, False], ids=["informative", "noise"])
@pytest.mark.parametrize(
    "estimator",
    # The first rows of a chain fix its map: see tests/kernel/test_chain.py.
    [one for one in PLAIN if hasattr(one, "partial_fit") and type(one) is not Chain],
    ids=as_id,
)
def test_a_feature_may_wake_up(estimator, informs, asleep):
    """A feature that was constant or tiny at first does not spoil the model."""
    factor, layout = DORMANT[asleep]
    X, y = informative(1600, 0, d=2)
    X_test, y_test = informative(4000, 1, d=2)
    sleeper = 0 if informs else 1
    X[:400, sleeper] *= factor
    awake = auc_of(trained(estimator, X[400:], y[400:], "fit"), X_test, y_test)
    model = trained(estimator, layout(X), y, "partial_fit")
    assert auc_of(model, X_test, y_test) > awake - 0.01


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
@pytest.mark.parametrize(
    "estimator",
    [
        one
        for one in PLAIN
        if hasattr(one, "partial_fit")
        and type(one) not in (CBR, FSAUC, SAM, LeastSquaresAUC)
    ],
    ids=as_id,
)
def test_one_outlier_does_not_spoil_a_stream(estimator, distance):
    """Averaged weights hardly move after one mislabelled row far away.

    CBR, FSAUC and SAM do not average over all rows; such a row dominates the loss that
    LeastSquaresAUC minimises.
    """
    X, y = informative(600, 0)
    X_test, y_test = informative(4000, 1)
    model = trained(estimator, X, y, "partial_fit")
    before = auc_of(model, X_test, y_test)
    wild = np.array([[-distance, 0.0, 0.0]])
    model.partial_fit(wild, [1])
    assert auc_of(model, X_test, y_test) > before - 0.01
    model.partial_fit(X[:100], y[:100])
    assert auc_of(model, X_test, y_test) > before - 0.05
