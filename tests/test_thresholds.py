"""Thresholds with a promise: violations in simulations, and against brute force."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from aucmax import thresholds
from aucmax.metrics._ranking import OneClassError
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


def broken_share(sample, rate, goal, draws=400, made=0.0):
    """Return the share of samples whose promise is broken, and its tolerance.

    At least the share ``made`` of the samples gets a threshold.
    """
    broken = refused = 0
    for seed in range(draws):
        y, score, more = sample(np.random.default_rng(seed))
        try:
            found = choose(y, score, goal, **more)
        except (NotAchievableError, OneClassError):
            refused += 1
            continue
        name, bound = found.promise
        true = rate(found.value, name)
        if name == "cost":
            broken += true > found.cost
        elif name in ("fpr", "alerts"):
            broken += true > bound
        else:
            broken += true < bound
    assert draws - refused >= made * draws
    return broken / draws, 0.05 + 2 * math.sqrt(0.05 * 0.95 / draws)


@pytest.mark.parametrize(
    ("n", "share", "missed"), [(2000, 0.005, 200), (300, 0.02, 100), (3000, 0.05, 20)]
)
def test_the_bound_of_the_cost_counts_the_share_of_positives_as_estimated(
    n, share, missed
):
    def sample(rng):
        return rng.random(n) < share, rng.random(n), {}

    def cost(t, _):
        below = min(max(t, 0.0), 1.0)
        return missed * share * below + (1 - share) * (1 - below)

    found, most = broken_share(sample, cost, f"cost={missed}", 300, made=0.9)
    assert found <= most


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_promises_hold_for_new_groups(goal, spread):
    def sample(rng):
        groups = np.repeat(np.arange(60), rng.integers(5, 50, 60))
        y, score = draw(rng, groups.size)
        score = score + spread * rng.normal(size=60)[groups]
        return y, score, {"groups": groups}

    def rate(t, name):
        scale = math.hypot(1.0, spread)
        return true_rates(t / scale, shift=1.5 / scale)[name]

    made = 0.7 if spread < 2.0 else 0.3 if goal != "precision>=0.5" else 0.02
    found, most = broken_share(sample, rate, goal, 200, made)
    assert found <= most


def test_groups_cost_little_if_rows_do_not_depend_on_them():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(100), 20)
    y, score = draw(rng, groups.size)
    plain = choose(y, score, "fpr<=0.1")
    grouped = choose(y, score, "fpr<=0.1", groups=rng.permutation(groups))
    assert 0.75 * plain.fpr < grouped.fpr <= plain.fpr


@pytest.mark.parametrize("goal", GOALS)
def test_copies_count_as_one_row(goal):
    rng = np.random.default_rng(0)
    y, score = draw(rng, 800)
    copies = {"groups": np.repeat(np.arange(800), 10)}
    found = choose(np.repeat(y, 10), np.repeat(score, 10), goal, **copies)
    expected = choose(y, score, goal)
    if goal == "precision>=0.5":  # tests other thresholds
        assert found.value == pytest.approx(expected.value, abs=0.1)
    else:
        assert found.value == expected.value
        assert found[3:] == pytest.approx(expected[3:], nan_ok=True)
    rate, verdict = verify(np.repeat(y, 10), np.repeat(score, 10), found, **copies)
    assert rate == pytest.approx(verify(y, score, found).rate)
    assert verdict == "kept"


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("heavy", [10.0, None])
def test_promises_hold_for_the_weighted_population(goal, heavy):
    # One row in ten is of a part with higher scores, which has ten times the weight.
    def population(rng, n):
        part = rng.random(n) < 0.1
        y, score = draw(rng, n)
        if heavy is None:
            return y, score, rng.integers(1, 6, n)
        return y, score + 1.5 * part, np.where(part, heavy, 1.0)

    def sample(rng):
        y, score, weight = population(rng, 1500)
        return y, score, {"sample_weight": weight}

    new = population(np.random.default_rng(10_000), 200_000)

    def rate(t, name):
        y, score, weight = new
        called = score >= t
        if name == "cost":
            return np.average(5.0 * (y & ~called) + (called & ~y), weights=weight)
        rows = {"fpr": ~y, "recall": y, "precision": called, "alerts": y | ~y}[name]
        hit = y if name == "precision" else called
        return np.average(hit[rows], weights=weight[rows])

    found, most = broken_share(sample, rate, goal, 200)
    assert found <= most


@pytest.mark.parametrize(
    "goal", ["fpr<=0.05", "fpr<=0.2", "recall>=0.8", "precision>=0.6"]
)
@pytest.mark.parametrize("n", [200, 800])
def test_heavy_rows_may_be_missing_from_the_sample_where_they_matter(goal, n):
    # Of the rows with the highest (or lowest) scores, one in ten is in the sample.
    def heavy(score):
        return score < 0.5 if goal == "recall>=0.8" else score > norm.isf(0.06)

    def sample(rng):
        y, score = draw(rng, 20 * n)
        kept = rng.random(y.size) < np.where(heavy(score), 0.1, 1.0)
        y, score = y[kept][:n], score[kept][:n]
        return y, score, {"sample_weight": np.where(heavy(score), 10.0, 1.0)}

    def rate(t, name):
        return true_rates(t)[name]

    made = 0.9 if goal == "fpr<=0.2" and n == 800 else 0.0
    found, most = broken_share(sample, rate, goal, 200, made)
    assert found <= most


@pytest.mark.parametrize("goal", ["fpr<=0.05", "recall>=0.8"])
def test_weights_that_differ_by_class_change_no_rate_of_a_class(goal):
    y, score = draw(np.random.default_rng(0))
    expected = choose(y, score, goal)
    found = choose(y, score, goal, sample_weight=np.where(y, 1.0, 30.0))
    assert found[:5] == expected[:5]


@pytest.mark.parametrize("goal", GOALS)
def test_one_pair_of_copies_changes_little(goal):
    y, score = draw(np.random.default_rng(0), 500)
    groups = np.append(np.arange(499), 0)
    y[499], score[499] = y[0], score[0]
    found = choose(y, score, goal, groups=groups)
    assert found.value == pytest.approx(choose(y, score, goal).value, abs=0.02)


@pytest.mark.parametrize("goal", GOALS)
def test_equal_weights_and_groups_of_one_row_change_nothing(goal):
    y, score = draw(np.random.default_rng(0))
    expected = choose(y, score, goal)
    assert repr(choose(y, score, goal, sample_weight=[0.1] * 400)) == repr(expected)
    assert repr(choose(y, score, goal, groups=np.arange(400))) == repr(expected)
    more = np.append(np.ones(400), np.zeros(50))
    extended = np.append(y, [True] * 50), np.append(score, np.arange(50.0))
    assert repr(choose(*extended, goal, sample_weight=more)) == repr(expected)


def test_few_groups_are_refused():
    y, score = draw(np.random.default_rng(0), 950)
    with pytest.raises(NotAchievableError, match="with 19 groups: at least 20"):
        choose(y, score, "fpr<=0.2", groups=np.arange(950) % 19)
    with pytest.raises(NotAchievableError, match="of 50 groups: at least 59 groups"):
        choose(y, score, "fpr<=0.05", groups=np.arange(950) % 50)


def test_rates_and_verdicts_are_weighted():
    y, score = draw(np.random.default_rng(0), 4000)
    weight = np.random.default_rng(1).integers(1, 4, 4000)
    found = choose(y, score, "fpr<=0.1", sample_weight=weight)
    called = score >= found.value
    assert found.fpr == pytest.approx(np.average(called[~y], weights=weight[~y]))
    assert found.alerts == pytest.approx(np.average(called, weights=weight))
    rate = verify(y, score, found, sample_weight=weight).rate
    assert rate.value == found.fpr
    plain = verify(y, score, found).rate
    assert rate.high - rate.low > 1.01 * (plain.high - plain.low)
