"""Comparison of algorithms on the same folds, and its statistics."""

import json
import warnings
from csv import DictReader
from io import StringIO

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import SPAM
from aucmax.workflows import compare as experiment
from aucmax.workflows.compare import compare, corrected_t, full_name, holm
from helpers.data import gaussian, scattered


class Direction(BaseEstimator):
    """Ranks by one feature; can warn or fail."""

    def __init__(self, feature=0, problem=None):
        self.feature = feature
        self.problem = problem

    def fit(self, X, y):
        if self.problem == "warn":
            warnings.warn("slowly", UserWarning, stacklevel=1)
        elif self.problem is not None and len(y) > 100:
            raise self.problem
        return self

    def decision_function(self, X):
        column = X[:, [self.feature]]
        return (column.toarray() if sparse.issparse(column) else column).ravel()


@pytest.fixture
def toys(monkeypatch):
    """Replace algorithms by trivial estimators."""
    kinds = {}
    monkeypatch.setattr(experiment, "build", lambda name, seed, is_sparse: kinds[name])
    monkeypatch.setattr(experiment, "full_name", lambda name: name)
    return kinds


def informative(n=300, seed=0):
    """Return features with decreasing information about the classes."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    return rng.standard_normal((n, 4)) + y[:, None] * [2.0, 1.0, 1.0, 0.0], y


def test_corrected_t_is_the_formula():
    values = np.array([0.1, 0.3, 0.2, 0.25, 0.05])
    estimate = corrected_t(values, overlap=0.25)
    t = values.mean() / np.sqrt((1 / 5 + 1 / 4) * values.var(ddof=1))
    assert estimate.mean == pytest.approx(0.18)
    assert estimate.p_value == pytest.approx(2 * stats.t.sf(t, df=4), rel=1e-12)
    half = stats.t.ppf(0.975, df=4) * values.mean() / t
    assert estimate.low == pytest.approx(values.mean() - half)
    assert estimate.high == pytest.approx(values.mean() + half)
    # Without overlap it is Student's.
    plain = corrected_t(values, overlap=0.0)
    assert plain.p_value == pytest.approx(stats.ttest_1samp(values, 0).pvalue)


def test_corrected_t_has_its_nominal_error_rate():
    # Nadeau and Bengio's model: folds correlate as the share of test rows.
    rng = np.random.default_rng(0)
    folds, overlap = 5, 1 / 4
    share = overlap / (1 + overlap)
    common, own = rng.standard_normal((4000, 1)), rng.standard_normal((4000, folds))
    values = np.sqrt(share) * common + np.sqrt(1 - share) * own
    errs = np.mean([corrected_t(one, overlap).p_value < 0.05 for one in values])
    naive = np.mean([corrected_t(one, 0.0).p_value < 0.05 for one in values])
    assert 0.04 < errs < 0.06  # three standard errors are 0.01
    assert naive > 0.1


@pytest.mark.parametrize(("value", "p"), [(0.0, 1.0), (-0.5, 0.0)])
def test_corrected_t_of_equal_values(value, p):
    assert corrected_t(np.full(5, value), 0.25) == (value, value, value, p)


def test_holm():
    # 4 · 0.005, 3 · 0.01, 2 · 0.03, 1 · 0.04, and never less than the one before.
    assert holm([0.03, 0.005, 0.04, 0.01]) == pytest.approx([0.06, 0.02, 0.06, 0.03])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_aucs_are_those_of_the_same_folds_by_hand():
    X, y = gaussian(300)
    y = y == 1
    result = compare(X, y, ["SPAM", "balanced-logistic"], seed=3)
    balanced = LogisticRegression(class_weight="balanced")
    models = {
        "SPAM": SPAM(random_state=3),
        "balanced-logistic": make_pipeline(StandardScaler(), balanced),
    }
    # RepeatedStratifiedKFold draws the seeds of its partitions.
    rng = np.random.RandomState(3)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=rng).split(X, y))
    for name, model in models.items():
        expected = []
        for train, test in splits:
            scores = model.fit(X[train], y[train]).decision_function(X[test])
            expected.append(roc_auc_score(y[test], scores))
        found = [trial.auc for trial in result.trials if trial.algorithm == name]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        row = next(row for row in result.rows if row.algorithm == name)
        assert row.auc.mean == pytest.approx(np.mean(expected))
        assert row.auc.low < row.auc.mean < row.auc.high
        assert 0.0 < row.seconds < 60.0


def test_logistic_regression_converges_on_a_table():
    """Numbers far from zero, in several units, and one-hot categories, in CSR."""
    rng = np.random.default_rng(0)
    n = 400
    job = np.eye(30)[rng.integers(0, 30, n)]
    numbers = rng.standard_normal((n, 3))
    y = numbers.sum(axis=1) + job @ rng.standard_normal(30) + rng.normal(0, 1, n) > 0
    X = np.c_[numbers * [1.0, 1e-3, 1e4] + [2020.0, 5.0, 1e6], job]
    dense = compare(X, y, ["balanced-logistic"], folds=3)
    table = compare(sparse.csr_array(X), y, ["balanced-logistic"], folds=3)
    assert sparse.issparse(experiment._in_cheaper_layout(sparse.csr_array(X)))
    for result in (dense, table):
        (row,) = result.rows
        assert not row.warnings
        assert row.error is None
    for one, other in zip(dense.trials, table.trials, strict=True):
        assert one.auc == pytest.approx(other.auc, abs=0.002)  # C holds back more
    texts = sparse.random_array((60, 500), density=0.01, rng=rng, format="csr")
    words = compare(texts, rng.random(60) < 0.5, ["balanced-logistic"], folds=2)
    assert words.rows[0].error is None


def test_sparse_and_dense_rows_give_the_same():
    X, y = scattered(200)
    dense = compare(X, y == 1, ["SPAM"], folds=3)
    csr = compare(sparse.csr_array(X), y == 1, ["SPAM"], folds=3)
    for one, other in zip(dense.trials, csr.trials, strict=True):
        assert one.auc == pytest.approx(other.auc, abs=1e-10)


def test_nearly_dense_csr_is_made_dense():
    dense = np.ones((10, 4))
    thin = sparse.csr_array(np.eye(10))
    assert isinstance(
        experiment._in_cheaper_layout(sparse.csr_array(dense)), np.ndarray
    )
    assert sparse.issparse(experiment._in_cheaper_layout(thin))
    assert experiment._in_cheaper_layout(dense) is dense


def test_the_best_comes_first_and_the_others_are_behind_it(toys):
    X, y = informative()
    toys |= {
        name: Direction(i) for i, name in enumerate(["good", "fair", "same", "no"])
    }
    toys["same"] = Direction(1)
    seen = []
    names = ["no", "fair", "good", "same"]
    result = compare(
        X, y, names, folds=4, repeats=2, watch=lambda *step: seen.append(step)
    )
    assert [done for name, done in seen if name == "fair"] == list(range(8, 17))
    assert seen[-1] == ("same", 32)
    order = [row.algorithm for row in result.rows]
    assert order[0] == "good"
    assert order[-1] == "no"
    assert len(result.trials) == 4 * 2 * 4
    best, second, third, last = result.rows
    assert best.behind is None
    assert best.p_holm is None
    areas = {
        name: np.array(
            [trial.auc for trial in result.trials if trial.algorithm == name]
        )
        for name in toys
    }
    expected = corrected_t(areas["no"] - areas["good"], 75 / 225)
    assert last.behind == pytest.approx(expected)
    assert last.behind.high < 0
    assert expected.p_value < last.p_holm < 0.01
    assert second.behind == third.behind  # twins
    np.testing.assert_array_equal(areas["fair"], areas["same"])


def test_comparison_is_reproducible(toys):
    X, y = informative()
    toys["good"] = Direction()

    def areas(seed):
        return [trial.auc for trial in compare(X, y, ["good"], seed=seed).trials]

    assert areas(1) == areas(1)
    assert areas(1) != areas(2)


def test_failed_algorithm_does_not_stop_the_others(toys):
    X, y = informative()
    toys |= {
        "good": Direction(0),
        "bad": Direction(0, MemoryError("too wide")),
        "loud": Direction(1, "warn"),
    }
    result = compare(X, y, ["bad", "good", "loud"])
    good, loud, bad = result.rows
    assert (good.algorithm, loud.algorithm, bad.algorithm) == ("good", "loud", "bad")
    assert bad.error == "MemoryError: too wide"
    assert bad.auc is None
    assert loud.warnings == {"UserWarning": 5}
    assert {trial.algorithm for trial in result.trials} == {"good", "loud"}
    assert loud.p_holm == pytest.approx(loud.behind.p_value)  # one pair only
    alone = compare(X, y, ["bad"])
    assert [row.error for row in alone.rows] == ["MemoryError: too wide"]
    json.dumps(alone.summary(), allow_nan=False)


def test_summary_and_table_have_everything(toys):
    X, y = informative()
    toys |= {"good": Direction(0), "fair": Direction(1)}
    result = compare(X, y, ["good", "fair"], folds=3)
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert (summary["rows"], summary["features"]) == (300, 4)
    assert summary["positives"] == y.sum()
    good, fair = summary["algorithms"]
    assert good["behind_best"] is None
    value = fair["auc"]["value"] - good["auc"]["value"]
    assert fair["behind_best"]["value"] == pytest.approx(value)
    lines = list(DictReader(StringIO(result.table())))
    assert len(lines) == 6
    for line, trial in zip(lines, result.trials, strict=True):
        assert line["algorithm"] == trial.algorithm
        assert float(line["auc"]) == trial.auc


def test_names_ignore_case():
    assert full_name("spam") == "SPAM"
    assert full_name("Balanced-Logistic") == "balanced-logistic"
    with pytest.raises(ValueError, match=r"no algorithm 'spa'. Did you mean SPAM"):
        full_name("spa")


def test_lightgbm_needs_its_package(monkeypatch):
    monkeypatch.setattr(experiment, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install lightgbm"):
        full_name("lightgbm")


def test_too_few_rows_of_a_class_are_an_error():
    X, y = informative(50)
    y[:] = False
    y[:3] = True
    with pytest.raises(ValueError, match="smaller class has only 3 rows"):
        compare(X, y, ["SPAM"])
    with pytest.raises(ValueError, match="two folds"):
        compare(X, y, ["SPAM"], folds=1)


@pytest.mark.parametrize("goal", ["precision@k=30", "precision@share=0.1"])
def test_a_goal_is_measured_on_each_fold_and_sorts(toys, goal):
    # The first feature ranks the top well and the rest badly; the second the reverse.
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.5
    top = np.where(y & (np.cumsum(y) <= 60), 5.0, 0.0) + rng.random(300)
    X = np.column_stack([top, y + 0.9 * rng.standard_normal(300)])
    toys |= {"top": Direction(0), "whole": Direction(1)}
    by_auc = compare(X, y, ["top", "whole"])
    result = compare(X, y, ["top", "whole"], goal=goal)
    assert [row.algorithm for row in by_auc.rows] == ["whole", "top"]
    assert [row.algorithm for row in result.rows] == ["top", "whole"]
    assert result.summary()["goal"] == goal
    splits = RepeatedStratifiedKFold(n_splits=5, n_repeats=1, random_state=0)
    wanted = []
    for _, test in splits.split(X, y):
        best = test[np.argsort(-X[test, 1])[: round(0.1 * len(test))]]
        wanted.append(y[best].mean())
    found = [t.goal for t in result.trials if t.algorithm == "whole"]
    assert found == pytest.approx(wanted)
    assert [t.auc for t in result.trials] == [t.auc for t in by_auc.trials]
    assert result.rows[1].behind.mean == pytest.approx(
        np.mean(wanted) - np.mean([t.goal for t in result.trials[:5]])
    )


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("net_benefit@0.1..0.2", "needs probabilities"),
        ("precision@k=300", "only 300 rows"),
        ("recall@fpr=x", "expected auc, pauc"),
    ],
)
def test_goals_that_cannot_be_compared(goal, message):
    X, y = informative()
    with pytest.raises(ValueError, match=message):
        compare(X, y, ["SPAM"], goal=goal)
