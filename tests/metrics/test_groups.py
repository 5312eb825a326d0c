"""AUC by group against loops over the groups."""

import numpy as np
import pytest
from scipy.stats import chi2

from aucmax.metrics import auc, auc_by_group, auc_interval, cross_auc


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    group = rng.choice(["north", "south", "west"], 300, p=[0.5, 0.3, 0.2])
    return y, (rng.standard_normal(300) + y).round(1), group


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_those_of_a_loop(rows, weighted):
    y, score, group = rows
    weight = np.random.default_rng(1).integers(0, 4, 300) / 3.0 if weighted else None
    found = auc_by_group(y, score, group, sample_weight=weight)
    assert [one.group for one in found.groups] == ["north", "south", "west"]
    areas = []
    for one in found.groups:
        here = group == one.group
        w = None if weight is None else weight[here]
        assert one.rows == here.sum()
        assert one.positives == y[here].sum()
        assert one.auc == auc_interval(y[here], score[here], sample_weight=w)
        areas.append(one.auc)
    A, se = np.array([(area.value, area.se) for area in areas]).T
    mean = np.average(A, weights=se**-2.0)
    statistic = (((A - mean) / se) ** 2).sum()
    assert found.statistic == pytest.approx(statistic)
    assert found.pvalue == pytest.approx(chi2.sf(statistic, 2))


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_groups_are_those_of_a_loop(rows, weighted):
    y, score, group = rows
    weight = np.random.default_rng(1).random(300) if weighted else None
    found = {
        (a, b): area for a, b, area in cross_auc(y, score, group, sample_weight=weight)
    }
    assert len(found) == 9
    for (a, b), area in found.items():
        both = ((group == a) & (y == 1)) | ((group == b) & (y == 0))
        w = None if weight is None else weight[both]
        expected = auc(y[both], score[both], sample_weight=w)
        assert area.value == pytest.approx(expected, abs=1e-14)


def test_groups_of_one_class_are_shown_as_nan(recwarn):
    y, score = [0, 1, 0, 1, 1, 1, 0], [1, 2, 2, 1, 3, 4, 5]
    group = ["a", "a", "a", "a", "b", "b", "c"]
    found = auc_by_group(y, score, group)
    assert [one.group for one in found.groups] == ["a", "b", "c"]
    assert np.isnan(found.groups[1].auc).all()
    assert np.isnan(found.pvalue)
    pairs = {(a, b) for a, b, _ in cross_auc(y, score, group)}
    assert pairs == {("a", "a"), ("a", "c"), ("b", "a"), ("b", "c")}
    # Weights can leave one class, too.
    weight = [1, 1, 1, 1, 1, 1, 0]
    pairs = {(a, b) for a, b, _ in cross_auc(y, score, group, sample_weight=weight)}
    assert pairs == {("a", "a"), ("b", "a")}
    assert not recwarn.list


def test_errors(rows):
    y, score, group = rows
    with pytest.raises(ValueError, match=r"group has shape \(5,\), but y has 300 rows"):
        auc_by_group(y, score, group[:5])
    with pytest.raises(ValueError, match="group holds values that cannot be sorted"):
        auc_by_group(y, score, np.array(["a", None, np.nan] * 100, object))
    with pytest.raises(ValueError, match="sample_weight has 301 rows, but y has 300"):
        auc_by_group(y, score, group, sample_weight=np.ones(301))
    with pytest.raises(ValueError, match=r"sample_weight is -1\.0 at row 299"):
        cross_auc(y, score, group, sample_weight=np.append(np.ones(299), -1.0))
