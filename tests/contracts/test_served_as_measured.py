"""Contract 14: the scores that are served are those on which results were measured.

Calibration, thresholds and AUC come from out-of-fold scores of the training rows. New
rows have new categories, other gaps and other formats, and come one by one.
"""

import warnings
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import aucmax
from aucmax import BAM, AUCClassifier, AUCStream, metrics, thresholds

WORDS = ["please", "call", "cancelled", "happy", "expensive", "ok", "error", "late"]


def numbers(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, X[:, 0] + rng.standard_normal(n) > 0.8


def table(n=900, seed=0):
    """Return a table in which no category is rare, and a text."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(7, 1, n).round(2),
            "year": rng.integers(1990, 2024, n).astype(float),
            "city": rng.choice(["Bern", "Lyon", "Rome", "Oslo", "Graz"], n),
            "note": [" ".join(rng.choice(WORDS, 4)) for _ in range(n)],
        }
    )
    effect = 1.5 * (frame.city == "Lyon") + 0.1 * (frame.year - 2007)
    effect += frame.note.str.contains("cancelled")
    return frame, (effect + rng.logistic(size=n) > 1.0).to_numpy()


@pytest.fixture(scope="module")
def model_and_rows():
    frame, y = table(1800)
    model = AUCClassifier(random_state=0).fit(frame[:900], y[:900])
    return model, frame[900:].reset_index(drop=True)


@pytest.mark.parametrize("n", [420, 499, 500, 560, 624, 900])
def test_served_scores_vary_as_the_out_of_fold_scores(n):
    new = numbers(20_000, 1)[0]
    ratios = []
    for seed in range(5):
        X, y = numbers(n, 100 * n + seed)
        model = AUCClassifier([BAM()], random_state=0).fit(X, y)
        ratios.append(model.decision_function(new).std() / model.out_of_fold_.std())
    assert 0.93 < np.mean(ratios) < 1.07


@pytest.mark.parametrize("kind", ["weights", "groups", "copies"])
def test_thresholds_and_goals_count_weights_groups_and_copies(kind):
    X, y = numbers(600, 3)
    rng = np.random.default_rng(0)
    fit, known = {}, {}
    if kind == "weights":
        fit = known = {"sample_weight": rng.choice([1.0, 10.0], 600)}
    elif kind == "groups":
        fit = known = {"groups": np.arange(600) // 4}
        X[:, 0] += np.repeat(rng.standard_normal(150), 4)
    else:
        X, y = np.repeat(X[:300], 4, axis=0), np.repeat(y[:300], 4)
        known = {"groups": np.repeat(np.arange(300), 4)}
    model = AUCClassifier([BAM()], goal="recall@fpr=0.05", random_state=0)
    model.fit(X, y, **fit)
    scores = model.out_of_fold_
    assert model.threshold_ == thresholds.choose(y, scores, "fpr<=0.05", **known)
    assert model.threshold_ != thresholds.choose(y, scores, "fpr<=0.05")
    assert model.goal_ == metrics.tpr_at(y, scores, 0.05, **known)


def test_a_new_or_missing_category_scores_as_the_mean_of_the_known_ones(model_and_rows):
    model, rows = model_and_rows
    assert any("linear" in name for name in model.members_)
    cities = [model.decision_function(rows.assign(city=c)) for c in set(rows.city)]
    # Six stand-ins for five cities: one of them counts twice.
    twice = [np.mean([*cities, again], axis=0) for again in cities]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new = model.decision_function(rows.assign(city="Paris"))
        missing = model.decision_function(rows.assign(city=None))
    assert_array_equal(missing, new)
    assert min(np.abs(new - one).max() for one in twice) < 1e-9


def test_rows_with_new_categories_score_alone_as_in_a_batch(model_and_rows, tmp_path):
    model, rows = model_and_rows
    rows = rows[:20].assign(city=["Paris", "Bern"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = model.decision_function(rows)
        alone = [model.decision_function(rows[i : i + 1])[0] for i in range(20)]
        model.save(tmp_path / "m")
        again = aucmax.load(tmp_path / "m").decision_function(rows)
    assert_allclose(alone, together, atol=1e-12)
    assert_array_equal(again, together)


def test_a_category_that_was_often_missing_keeps_its_own_effect():
    frame, y = table()
    gone = y & (np.arange(len(y)) % 2 == 0)  # missing says something
    frame["city"] = frame.city.where(~gone, None)
    model = AUCClassifier(random_state=0).fit(frame, y)
    missing = model.decision_function(frame.assign(city=None))
    known = model.decision_function(frame.assign(city="Bern"))
    assert np.median(missing) > np.median(known) + 1.0


@pytest.mark.parametrize("text", [True, False])
def test_a_number_missing_only_in_new_rows_scores_as_the_median(text):
    frame, y = table()
    frame = frame if text else frame.drop(columns="note")
    model = AUCClassifier(random_state=0).fit(frame, y)
    median = model.decision_function(frame.assign(year=frame.year.median()))
    assert_allclose(model.decision_function(frame.assign(year=np.nan)), median)


def test_a_number_missing_in_one_row_scores_as_the_median_in_every_fold():
    frame, y = table()
    frame = frame.drop(columns="note")
    median = frame.year.median()
    frame.loc[7, "year"] = np.nan  # the trees of its fold have seen none missing
    model = AUCClassifier(random_state=0).fit(frame, y)
    filled = AUCClassifier(random_state=0).fit(frame.fillna({"year": median}), y)
    assert abs(model.out_of_fold_[7] - filled.out_of_fold_[7]) < 0.7


def test_reasons_of_one_row_are_those_in_a_batch(model_and_rows, tmp_path):
    model, rows = model_and_rows
    model.save(tmp_path / "m")
    for one in (model, aucmax.load(tmp_path / "m")):
        together = one.reasons(rows[:5])
        for i, expected in enumerate(together):
            (alone,) = one.reasons(rows[i : i + 1])
            assert [reason.column for reason in alone] == [r.column for r in expected]
            assert_allclose([r[1] for r in alone], [r[1] for r in expected])
            assert len(alone) == 3


def test_the_model_keeps_no_training_row(model_and_rows):
    model, _ = model_and_rows
    encoded = model.encoder_.transform(table(1800)[0][:900]).toarray()
    typical = model._background
    assert not (typical[:, np.newaxis, :3] == encoded[:, :3]).all(axis=2).any()


def test_a_value_that_is_too_large_is_named_beside_texts(model_and_rows):
    model, rows = model_and_rows
    with pytest.raises(ValueError, match=r"1e\+160|too large"):
        model.decision_function(rows.assign(amount=1e160))


def test_masked_values_are_refused_in_every_argument(model_and_rows):
    X, y = numbers(120, 0)
    masked = np.ma.array(np.ones(120), mask=np.arange(120) == 3)
    model = AUCClassifier([BAM()], class_weight="balanced")
    for given in ({"sample_weight": masked}, {"groups": masked}):
        with pytest.raises(ValueError, match=r"masked array with 1 masked .* row 3"):
            model.fit(X, y, **given)
    lacking = np.ma.array(X, mask=X > 2.0)
    fitted = model.fit(X, y)
    for method in (fitted.decision_function, fitted.reasons):
        with pytest.raises(ValueError, match="X is a masked array"):
            method(lacking)


def test_rows_whose_group_is_missing_are_one_group():
    X, y = numbers(600, 0)
    groups = np.arange(600) // 3.0
    groups[:9] = np.nan
    known = np.where(np.isnan(groups), 1e9, groups)
    both = [
        AUCClassifier([BAM()], goal="recall@fpr=0.05", random_state=0).fit(
            X, y, groups=one
        )
        for one in (groups, known)
    ]
    assert_array_equal(both[0].out_of_fold_, both[1].out_of_fold_)
    assert both[0].threshold_ == both[1].threshold_


MIXED = {  # of a column of times, numbers or categories
    "when": [
        *(datetime(2020, 1, 1, 15, 30), date(2020, 1, 1), pd.NaT, None, "2020-01-01"),
        *(1577836800, np.datetime64("2020-01-01T15:30", "m")),
    ],
    "amount": [2.5, 1, True, np.float32(0.5), None, float("nan"), np.True_],
    "city": ["Rome", 3, 2.5, None, float("nan"), pd.NA, "Oslo"],
}


@pytest.mark.parametrize("column", MIXED)
@pytest.mark.parametrize("form", ["dicts", "frame"])
def test_a_value_means_the_same_whatever_is_beside_it(column, form):
    rng = np.random.default_rng(0)
    rows = [
        {
            "when": datetime(2020, 1, 1) + timedelta(hours=int(rng.integers(48))),
            "amount": float(rng.normal()),
            "city": str(rng.choice(["Rome", "Oslo", "Bern"])),
        }
        for _ in range(1200)
    ]
    odds = [
        row["amount"] + row["when"].hour / 6 + (row["city"] == "Rome") for row in rows
    ]
    y = np.array(odds) + rng.logistic(size=1200) > 3.0
    model = AUCStream(random_state=0).partial_fit(rows, y)

    def scores(some):
        if form == "frame":
            some = pd.DataFrame(some).astype(dict.fromkeys(some[0], object))
        return model.decision_function(some)

    new = [rows[0] | {column: value} for value in MIXED[column]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        together = scores(new)
        assert_array_equal(scores(new[::-1])[::-1], together)
        assert_array_equal([scores([row])[0] for row in new], together)
