"""Thresholds with a promise: violations in simulations, and against brute force."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from aucmax import thresholds
from aucmax.thresholds import (
    NotAchievableError,
    Promise,
    Threshold,
    choose,
    parse,
    verify,
)

GOALS = [
    "fpr<=0.05",
    "recall>=0.8",
    "alerts<=0.1",
    "precision>=0.5",
    "cost=5",
]


def draw(rng, n=400, share=0.25, shift=1.5):
    y = rng.random(n) < share
    return y, shift * y + rng.normal(size=n)


def true_rates(t, share=0.25, shift=1.5):
    recall, fpr = norm.sf(t - shift), norm.sf(t)
    alerts = share * recall + (1 - share) * fpr
    return {
        "recall": recall,
        "fpr": fpr,
        "alerts": alerts,
        "precision": share * recall / alerts,
        "cost": 5 * share * (1 - recall) + (1 - share) * fpr,
    }


@pytest.mark.parametrize("goal", GOALS)
def test_promises_hold_in_19_of_20_samples(goal):
    rng = np.random.default_rng(0)
    broken, draws = 0, 600
    for _ in range(draws):
        try:
            found = choose(*draw(rng), goal)
        except NotAchievableError:
            continue  # no promise is not a broken one
        rate = true_rates(found.value)[found.promise.rate]
        name, bound = found.promise
        if name == "cost":
            broken += rate > found.cost
        elif name in ("fpr", "alerts"):
            broken += rate > bound
        else:
            broken += rate < bound
    # 5 % and three standard errors
    assert broken / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize("goal", ["fpr<=0.05", "recall>=0.8", "alerts<=0.1"])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_order_statistics_are_the_best_that_can_be_promised(goal, confidence):
    y, score = draw(np.random.default_rng(1))
    found = choose(y, score, goal, confidence=confidence)
    name, bound = found.promise
    sample = {"fpr": score[~y], "recall": score[y], "alerts": score}[name]
    n = sample.size
    if name == "recall":
        missed = int(np.sum(sample < found.value))
        assert binom.cdf(missed, n, 1 - bound) <= 1 - confidence
        assert binom.cdf(missed + 1, n, 1 - bound) > 1 - confidence
    else:
        called = int(np.sum(sample >= found.value))
        assert binom.cdf(called, n, bound) <= 1 - confidence
        assert binom.cdf(called + 1, n, bound) > 1 - confidence


def test_the_rates_are_those_of_the_rows():
    y, score = draw(np.random.default_rng(2))
    found = choose(y, score, "precision>=0.5")
    called = score >= found.value
    assert found.recall == called[y].mean()
    assert found.fpr == called[~y].mean()
    assert found.precision == y[called].mean()
    assert found.alerts == called.mean()
    assert math.isnan(found.cost)


def test_the_lowest_cost_is_found():
    y, score = draw(np.random.default_rng(3), 60)
    score = np.round(score, 1)
    found = choose(y, score, "cost=5")
    costs = {
        t: (5 * np.sum(y & (score < t)) + np.sum(~y & (score >= t))) / y.size
        for t in [*np.unique(score), np.inf]
    }
    assert costs[found.value] == min(costs.values())
    assert found.cost > costs[found.value]


@pytest.mark.parametrize("goal", GOALS[:4])
def test_tied_scores_keep_the_promise_on_the_rows(goal):
    y, score = draw(np.random.default_rng(4), 2000)
    found = choose(y, np.round(score), goal)
    rate = getattr(found, found.promise.rate)
    if found.promise.rate in ("fpr", "alerts"):
        assert rate <= found.promise.bound
    else:
        assert rate >= found.promise.bound


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("fpr<=0.001", r"with \d+ negatives: about [\d,]+ more are needed"),
        ("recall>=0.999", r"with \d+ positives: about [\d,]+ more are needed"),
        ("alerts<=0.0001", r"with 400 rows: about [\d,]+ more are needed"),
        ("precision>=0.99", "cannot be promised with 400 rows"),
    ],
)
def test_too_few_rows_are_an_error_with_their_number(goal, message):
    y, score = draw(np.random.default_rng(5))
    with pytest.raises(NotAchievableError, match=message):
        choose(y, score, goal)


def test_as_many_rows_as_the_message_says_are_enough():
    needed = math.ceil(math.log(0.05) / math.log(1 - 0.01))
    y = np.append(np.zeros(needed), [1, 1])
    score = np.arange(y.size, dtype=float)
    choose(y, score, "fpr<=0.01")
    with pytest.raises(NotAchievableError, match="about 1 more"):
        choose(y[1:], score[1:], "fpr<=0.01")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recall >= 90%", Promise("recall", 0.9)),
        ("fpr<=1e-3", Promise("fpr", 0.001)),
        ("alerts<=100/20000", Promise("alerts", 0.005)),
        ("cost=20", Promise("cost", 20.0)),
        (Promise("precision", 0.3), Promise("precision", 0.3)),
        ("fpr<=0.9999999", Promise("fpr", 0.9999999)),
    ],
)
def test_texts(text, expected):
    found = parse(text)
    assert found.rate == expected.rate
    assert found.bound == pytest.approx(expected.bound)
    assert parse(str(found)) == found


@pytest.mark.parametrize(
    "text",
    ["recall<=0.9", "fpr>=0.1", "speed>=3", "fpr<=0", "recall>=1", "cost=-1", "", 3],
)
def test_wrong_texts_are_errors_that_help(text):
    with pytest.raises(ValueError, match=r"expected|above 0"):
        parse(text)


def test_labels_of_any_kind_and_module_access():
    y, score = draw(np.random.default_rng(6))
    labels = np.where(y, "bad", "good")
    found = thresholds.choose(labels, score, "fpr<=0.05", pos_label="bad")
    assert found.value == choose(y, score, "fpr<=0.05").value
    assert "fpr <= 0.05 with confidence 95 %" in str(found)


@pytest.mark.parametrize("goal", GOALS)
def test_the_verdict_is_that_of_counting(goal):
    rng = np.random.default_rng(1)
    y, score = draw(rng, 1000)
    chosen = choose(y, score, goal)
    new_y, new_score = draw(rng, 3000)
    called = new_score >= chosen.value
    slow = {
        "recall": called[new_y].mean(),
        "fpr": called[~new_y].mean(),
        "alerts": called.mean(),
        "precision": new_y[called].mean(),
        "cost": (5 * (new_y & ~called).sum() + (called & ~new_y).sum()) / 3000,
    }[chosen.promise.rate]
    rate, verdict = verify(new_y, new_score, chosen)
    assert rate.value == pytest.approx(slow)
    assert rate.low < rate.value < rate.high
    assert verdict == "kept"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [(100, "missed, perhaps by chance"), (10_000, "broken")],
)
@pytest.mark.parametrize(
    "promise", [("fpr", 0.09), ("recall", 0.92), ("precision", 0.92), ("alerts", 0.49)]
)
def test_a_missed_promise_may_be_chance_if_rows_are_few(promise, rows, verdict):
    # At the threshold, recall and precision are 90 %, the other rates 10 and 50 %.
    y = np.arange(rows) % 2 == 0
    score = np.where(np.arange(rows) // 2 % 10 == 0, ~y, y).astype(float)
    nan = math.nan
    threshold = Threshold(0.5, Promise(*promise), 0.95, nan, nan, nan, nan, nan)
    assert verify(y, score, threshold).verdict == verdict


def test_precision_without_called_rows_is_unknown():
    nan = math.nan
    threshold = Threshold(9.0, Promise("precision", 0.5), 0.95, nan, nan, nan, nan, nan)
    found = verify([0, 1, 1], [0.0, 1.0, 2.0], threshold)
    assert math.isnan(found.rate.value)
    assert found.verdict == "unknown"


@pytest.mark.parametrize("goal", ["fpr<=0.05", "alerts<=10%"])
def test_no_threshold_is_above_infinite_scores(goal):
    y, scores = draw(np.random.default_rng(0))
    scores[scores > 1.0] = np.inf
    with pytest.raises(NotAchievableError, match="score inf, and no threshold"):
        choose(y, scores, goal)
    scores[scores < 1.0] = -np.inf
    assert verify(y, scores, choose(y, scores, "recall>=0.3")).verdict == "kept"


@pytest.mark.parametrize("goal", GOALS)
def test_the_level_of_a_verdict_is_checked(goal):
    y, scores = draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="level=2"):
        verify(y, scores, choose(y, scores, goal), level=2)
