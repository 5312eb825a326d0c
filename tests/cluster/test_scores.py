"""Scores and AUC on a cluster, compared with one machine."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import UndefinedMetricWarning

from helpers.parts import blocks

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

import dask.array as da

from aucmax import LeastSquaresAUC, cluster, metrics


def labelled_scores(n, ties, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    y[:2] = 0, 1
    score = rng.standard_normal(n) + 0.8 * y
    return y, np.round(score, 1) if ties else score, rng.integers(0, 3, n) * 0.3 + 0.1


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 50, 3000])
def test_equal_to_one_machine(n, ties):
    y, score, weight = labelled_scores(n, ties)
    weight[n // 2 : n // 2 + n // 10] = 0.0
    parts = blocks(score, y, [n // 3, n // 3, n - 1], weight)
    scores, labels, weights = parts
    assert cluster.auc(labels, scores) == metrics.auc(y, score)
    found = cluster.auc(labels, scores, sample_weight=weights)
    expected = metrics.auc(y, score, sample_weight=weight)
    assert found == expected
    for method in ("wilson", "logit", "wald"):
        found = cluster.auc_interval(labels, scores, method=method)
        assert found == metrics.auc_interval(y, score, method=method)
        found = cluster.auc_interval(
            labels, scores, method=method, sample_weight=weights
        )
        expected = metrics.auc_interval(y, score, method=method, sample_weight=weight)
        assert found == expected


def test_ends_and_types():
    y = np.array(["a", "b", "a", "b"])
    parts = np.array([-np.inf, np.inf]), np.array([0.0, 1.0], np.float32)
    labels = [y[:2], y[2:]]
    assert cluster.auc(labels, list(parts)) == 1.0
    assert cluster.auc(labels, list(parts), pos_label="a") == 0.0
    assert cluster.auc(labels, [np.zeros(2), np.zeros(2)]) == 0.5


def test_perfect_and_reversed():
    y = np.arange(1000) % 2
    for score in (y, -y, y * 0):
        labels, scores = (da.from_array(a, chunks=300) for a in (y, score))
        assert cluster.auc(labels, scores) == metrics.auc(y, score)
        assert cluster.auc_interval(labels, scores) == metrics.auc_interval(y, score)


def test_scores_are_lazy():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 3)), rng.integers(0, 2, 200)
    model = LeastSquaresAUC().fit(X, y)
    lazy = cluster.decision_function(model, da.from_array(X, chunks=(50, 2)))
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (200,)
    np.testing.assert_allclose(lazy.compute(), model.decision_function(X))
    parts, labels = blocks(sparse.csr_array(X), y, [0, 77])
    scores = cluster.decision_function(model, parts)
    assert cluster.auc(labels, scores) == model.score(X, y)


@pytest.mark.parametrize(
    ("y", "score", "message"),
    [
        ([[0, 0], [0]], [[1.0, 2.0], [3.0]], "two classes"),
        ([[0, 1], [2]], [[1.0, 2.0], [3.0]], "two classes"),
        ([[0, 1], [1]], [[1.0, 2.0], [np.nan]], "Partition 1: score is NaN"),
        ([[0, 1], [1]], [[1.0], [3.0]], "Partition 0: score has 1 rows"),
        ([[0, 1]], [[1.0, 2.0], [3.0]], "1 partitions"),
    ],
)
def test_errors_name_the_partition(y, score, message):
    y, score = list(map(np.asarray, y)), list(map(np.asarray, score))
    with pytest.raises(ValueError, match=message):
        cluster.auc(y, score)


def test_errors_of_options():
    y, score = [np.array([0, 1])], [np.array([0.0, 1.0])]
    with pytest.raises(ValueError, match="pos_label=7"):
        cluster.auc(y, score, pos_label=7)
    with pytest.warns(UndefinedMetricWarning, match="some weight in both"):
        assert np.isnan(cluster.auc(y, score, sample_weight=[np.array([0.0, 1.0])]))
    with pytest.raises(ValueError, match="method"):
        cluster.auc_interval(y, score, method="exact")
