"""Goals: texts, values, and what AUCClassifier does with them."""

import json

import numpy as np
import pytest

import aucmax
from aucmax import BAM, AUCClassifier, goals, metrics
from aucmax.core.validation import DataWarning
from aucmax.thresholds import Promise
from aucmax.thresholds import parse as parse_promise
from helpers.commands import invoke


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    return X, (X[:, 0] + rng.normal(size=1500) > 1.5).astype(int)


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("auc", goals.AUC()),
        ("pauc@fpr=0.05", goals.PartialAUC(0.05)),
        ("recall@fpr=0.01", goals.RecallAtFPR(0.01)),
        ("precision@k=100", goals.PrecisionAtTop(100)),
        ("precision@share=0.01", goals.PrecisionAtTop(0.01)),
        ("net_benefit@0.05..0.2", goals.NetBenefit(0.05, 0.2)),
        # Model files and reports have the text in place of the object.
        ("precision@k=2000000", goals.PrecisionAtTop(2_000_000)),
        ("recall@fpr=0.012345678", goals.RecallAtFPR(0.012345678)),
    ],
)
def test_texts_and_objects(text, goal):
    assert goals.parse(text) == goal
    assert str(goal) == text
    assert goals.parse(goal) is goal


@pytest.mark.parametrize(
    "text",
    ["AUCC", "recall@fpr=2", "recall@tpr=0.1", "precision@k=0", "net_benefit@0.5..0.2"],
)
def test_wrong_texts_name_the_text(text):
    with pytest.raises(ValueError, match="goal='"):
        goals.parse(text)
    with pytest.raises(TypeError, match="expected auc"):
        goals.parse(3)


def test_values_are_those_of_the_metrics():
    rng = np.random.default_rng(1)
    y = rng.random(800) < 0.2
    s = 1.5 * y + rng.normal(size=800) - 2.0
    assert goals.AUC().interval(y, s).value == metrics.auc(y, s)
    assert goals.RecallAtFPR(0.1).interval(y, s) == metrics.tpr_at(y, s, 0.1)
    expected = metrics.precision_interval(y, s, 50)
    assert goals.PrecisionAtTop(50).interval(y, s) == expected
    expected = metrics.partial_auc(y, s, max_fpr=0.1, standardise=True)
    assert goals.PartialAUC(0.1).interval(y, s).value == expected
    p = 1.0 / (1.0 + np.exp(-s))
    curve = metrics.net_benefit(y, p, thresholds=np.linspace(0.05, 0.2, 31))
    found = goals.NetBenefit(0.05, 0.2).interval(y, s)
    assert found.value == pytest.approx(curve.net_benefit.mean(), abs=1e-12)
    assert found.low < found.value < found.high


def test_promises():
    assert goals.RecallAtFPR(0.01).promise(1000) == Promise("fpr", 0.01)
    assert goals.PrecisionAtTop(100).promise(1000) == Promise("alerts", 0.1)
    shown = goals.PrecisionAtTop(100).promise(768)
    assert str(shown) == "alerts <= 0.130208"
    assert parse_promise(str(shown)) == shown
    assert goals.AUC().promise(1000) is None
    assert goals.NetBenefit(0.1, 0.3).score == pytest.approx(np.log(0.2 / 0.8))


def test_the_classifier_reports_and_keeps_its_goal(rows, tmp_path):
    X, y = rows
    model = AUCClassifier([BAM()], goal="recall@fpr=0.05", random_state=0).fit(X, y)
    plain = AUCClassifier([BAM()], random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.out_of_fold_, plain.out_of_fold_)
    assert not np.isnan(model.out_of_fold_).any()
    assert model.goal_ == metrics.tpr_at(y, model.out_of_fold_, 0.05)
    assert plain.goal_ == plain.auc_[:3]
    assert plain.threshold_ is None
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), scores >= model.threshold_.value)
    np.testing.assert_array_equal(plain.predict(X), scores > 0.0)
    held = model.out_of_fold_[y == 0] >= model.threshold_.value
    assert 0.0 < held.mean() <= 0.05
    model.save(tmp_path / "m.aucmax")
    again = aucmax.load(tmp_path / "m.aucmax")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.goal_ == model.goal_
    assert again.threshold_.promise == model.threshold_.promise


def test_a_rate_near_one_is_saved(rows, tmp_path):
    X, y = rows
    goal = "recall@fpr=0.9999999"
    model = AUCClassifier([BAM()], goal=goal, random_state=0).fit(X, y)
    model.save(tmp_path / "m.aucmax")
    again = aucmax.load(tmp_path / "m.aucmax").threshold_.promise
    assert again == model.threshold_.promise == Promise("fpr", 0.9999999)


def test_objects_are_saved_as_their_text(rows, tmp_path):
    X, y = rows
    goal = goals.PrecisionAtTop(0.1)
    model = AUCClassifier([BAM()], goal=goal, random_state=0).fit(X, y)
    model.save(tmp_path / "m.aucmax")
    assert aucmax.load(tmp_path / "m.aucmax").goal == "precision@share=0.1"
    benefit = AUCClassifier([BAM()], goal="net_benefit@0.1..0.3", random_state=0)
    called = benefit.fit(X, y).predict(X)
    p = benefit.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(called, p > 0.2)


def test_a_promise_that_needs_more_rows_is_a_warning(rows):
    X, y = rows
    model = AUCClassifier([BAM()], goal="recall@fpr=0.0001", random_state=0)
    with pytest.warns(DataWarning, match="more are needed"):
        model.fit(X, y)
    assert model.threshold_ is None
    with pytest.raises(ValueError, match="expected auc"):
        AUCClassifier(goal="best").fit(X, y)


def test_info_shows_goal_and_threshold(rows, tmp_path):
    X, y = rows
    path = tmp_path / "m.aucmax"
    model = AUCClassifier([BAM()], goal="recall@fpr=0.05", random_state=0).fit(X, y)
    model.save(path)
    found = json.loads(invoke("info", path, "--json").stdout)["goal"]
    assert found["goal"] == "recall@fpr=0.05"
    assert found["value"] == list(model.goal_)
    assert found["threshold"] == model.threshold_.value
    text = " ".join(invoke("info", path).stdout.split())
    assert "goal recall@fpr=0.05: " in text
    assert f"threshold {model.threshold_}" in text


TEXTS = [
    "auc",
    "pauc@fpr=0.2",
    "recall@fpr=0.2",
    "precision@share=0.1",
    "precision@k=80",
    "net_benefit@0.1..0.3",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_scale_of_sampling_weights_does_not_matter(text):
    rng = np.random.default_rng(0)
    y, goal = rng.random(800) < 0.25, goals.parse(text)
    s = 1.5 * y + rng.normal(size=800) - 1.5
    w = rng.exponential(size=800)
    found = goal.interval(y, s, 0.95, w)
    assert found == pytest.approx(goal.interval(y, s, 0.95, 1e-6 * w), rel=1e-9)
    assert found.value != goal.interval(y, s).value
    plain = goal.interval(y, s, 0.95, np.ones(800), np.arange(800))
    assert plain == pytest.approx(goal.interval(y, s), rel=1e-3)


@pytest.mark.parametrize("text", TEXTS[:4] + TEXTS[5:])
def test_copies_in_groups_make_no_interval_narrower(text):
    rng = np.random.default_rng(1)
    y, goal = rng.random(800) < 0.25, goals.parse(text)
    s = 1.5 * y + rng.normal(size=800) - 1.5
    rows = goal.interval(y, s)
    many = np.repeat(y, 10), np.repeat(s, 10)
    grouped = goal.interval(*many, groups=np.repeat(np.arange(800), 10))
    plain = goal.interval(*many)
    assert grouped.value == pytest.approx(rows.value, rel=1e-9)
    assert grouped.high - grouped.low > 0.97 * (rows.high - rows.low)
    assert plain.high - plain.low < 0.5 * (rows.high - rows.low)
    weighted = goal.interval(*many, 0.95, np.tile([1.0, 2.0], 4000), np.arange(8000))
    assert weighted.low < weighted.value < weighted.high


@pytest.mark.parametrize("text", ["recall@fpr=0.2", "precision@share=0.1"])
def test_intervals_cover_in_new_groups(text):
    goal = goals.parse(text)

    def draw(rng, n):
        groups = np.repeat(np.arange(n), rng.integers(5, 40, n))
        y = rng.random(groups.size) < 0.25
        s = 1.5 * y + 1.5 * rng.normal(size=n)[groups] + rng.normal(size=groups.size)
        return y, s, groups

    true = goal.interval(*draw(np.random.default_rng(0), 10_000)[:2]).value
    covered = 0
    for seed in range(200):
        y, s, groups = draw(np.random.default_rng(seed + 1), 40)
        found = goal.interval(y, s, groups=groups)
        covered += found.low <= true <= found.high
    assert covered / 200 >= 0.95 - 2 * np.sqrt(0.05 * 0.95 / 200)
