"""AUC of several classes against scikit-learn and the jackknife."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from aucmax.metrics import auc_interval, multiclass_auc


def sample(seed, sizes=(12, 20, 9, 15), digits=1):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    raw = rng.standard_normal((y.size, len(sizes))) + 1.2 * np.eye(len(sizes))[y]
    return y, np.exp(raw.round(digits))


@pytest.mark.parametrize(("average", "name"), [("hand_till", "ovo"), ("ovr", "ovr")])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_scikit_learns(average, name, seed):
    y, score = sample(seed)
    p = score / score.sum(axis=1, keepdims=True)
    expected = roc_auc_score(y, p, multi_class=name, average="macro")
    found = multiclass_auc(y, p, average=average)
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("average", ["hand_till", "ovr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_error_is_the_jackknifes(average, weighted):
    y, score = sample(5)
    weight = np.random.default_rng(5).uniform(0.5, 2.0, y.size)
    weight = weight if weighted else np.ones(y.size)
    options = {"average": average, "labels": range(4)}
    whole = multiclass_auc(y, score, sample_weight=weight, **options)
    changes = []
    for row in range(y.size):
        rest = np.arange(y.size) != row
        without = multiclass_auc(
            y[rest], score[rest], sample_weight=weight[rest], **options
        )
        n = np.count_nonzero(y == y[row])
        changes.append(np.sqrt((n - 1) / n) * (whole.value - without.value))
    jackknife = np.sqrt(np.sum(np.square(changes)))
    # "ovr" counts the rows of the rest in another way: n - 1 of n.
    assert whole.se == pytest.approx(jackknife, rel=1e-9 if average != "ovr" else 0.05)


def test_two_classes_are_an_auc():
    y, score = sample(6, (10, 14))
    column = score[:, 1] / score.sum(axis=1)
    both = np.column_stack([1.0 - column, column])
    for average in ("hand_till", "ovr"):
        found = multiclass_auc(y, both, average=average)
        assert found == pytest.approx(auc_interval(y, column), rel=1e-9)


def test_labels_give_the_order_of_columns():
    y, score = sample(7)
    names = np.array(["d", "b", "a", "c"])
    found = multiclass_auc(names[y], score, labels=names)
    assert found == pytest.approx(multiclass_auc(y, score))
    order = np.argsort(names)
    assert multiclass_auc(names[y], score[:, order]) == pytest.approx(found)


def test_perfect_rankings_are_one():
    y = np.repeat(np.arange(7), 3)
    found = multiclass_auc(y, np.eye(7)[y])
    assert found.value == found.high == 1.0
    assert found.se == 0.0
    assert 0.2 < found.low < 0.9


def test_single_rows_and_equal_scores():
    y, score = sample(8, (1, 5, 5))
    found = multiclass_auc(y, score)
    assert np.isfinite(found).all()
    assert found.high - found.low > 0.5
    same = multiclass_auc(y, np.ones_like(score))
    assert (same.value, same.se) == (0.5, pytest.approx(0.5))  # a class has one row
    y, score = sample(8, (4, 5, 5))
    same = multiclass_auc(y, np.ones_like(score))
    assert (same.value, same.se) == (0.5, 0.0)
    assert same.high - same.low > 0.5


def test_errors():
    y, score = sample(9, (4, 5, 5))
    with pytest.warns(UndefinedMetricWarning, match="multiclass_auc is NaN"):
        assert np.isnan(multiclass_auc([1, 1], [[1.0], [2.0]])).all()
    with pytest.raises(ValueError, match="class 3 has no row: leave out its column"):
        multiclass_auc(y, np.ones((14, 4)), labels=range(4))
    with pytest.raises(ValueError, match=r"score has shape \(14, 3\)"):
        multiclass_auc(y, score, labels=[0, 1])
    with pytest.raises(ValueError, match="average='macro'"):
        multiclass_auc(y, score, average="macro")
    score[11, 2] = np.nan
    with pytest.raises(ValueError, match=r"score\[:, 2\] is NaN at row 11"):
        multiclass_auc(y, score)
    with pytest.raises(ValueError, match="sample_weight has 3 rows, but y has 14"):
        multiclass_auc(y, np.ones((14, 3)), sample_weight=[1, 1, 1])
