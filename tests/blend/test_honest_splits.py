"""Time and groups: splits, estimates and hints."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

import aucmax
from aucmax import BAM, AUCClassifier
from aucmax.blend.honest import Design, time_of_rows, time_splits
from aucmax.blend.leaks import find_leaks
from aucmax.core.validation import DataWarning
from aucmax.metrics import auc_interval
from aucmax.tables.structure import find_structure
from helpers.commands import invoke


def test_test_blocks_are_later_than_training_rows():
    rng = np.random.default_rng(0)
    time = np.floor(rng.random(500) * 40)
    y = rng.random(500) < 0.4
    splits = time_splits(Design(time, None), 0.0, False, y)
    assert len(splits) == 5
    for train, test in splits:
        assert time[train].max() < time[test].min()
        assert test.size == pytest.approx(50, abs=20)
    for (_, first), (train, second) in pairwise(splits):
        assert time[first].max() < time[second].min()
        assert np.isin(first, train).all()  # the window expands
    train, last = splits[-1]
    assert train.size + last.size == 500  # nothing is left out at the end
    assert time[last].max() == time.max()


def test_blocks_with_few_positives_are_joined():
    time, y = np.arange(1000.0), np.zeros(1000, bool)
    y[::100] = True  # one or two in a tenth
    y[[510, 520, 530, 540]] = True
    splits = time_splits(Design(time, None), 0.0, False, y)
    # From the end: 5 positives from 500 on, as 4 of the later ones are too few.
    assert [test[0] for _, test in splits] == [500]
    y[905:910] = True
    splits = time_splits(Design(time, None), 0.0, False, y)
    assert [test[0] for _, test in splits] == [500, 900]
    y[:] = False
    y[[1, 2, 3, 800]] = True  # too few for 5: then 1
    ((train, test),) = time_splits(Design(time, None), 0.0, False, y)
    assert (train.size, test[0], test[-1]) == (800, 800, 999)
    y[3] = False
    with pytest.raises(ValueError, match="3 rows of each class before it"):
        time_splits(Design(time, None), 0.0, False, y)


def test_gap_groups_and_missing_times():
    rng = np.random.default_rng(1)
    time = np.arange(300.0)
    time[:10] = np.nan
    group = rng.integers(0, 200, 300).astype(str)
    y = rng.random(300) < 0.5
    for train, test in time_splits(Design(time, group), 20.0, False, y):
        known = train[~np.isnan(time[train])]
        assert time[known].max() < time[test].min() - 20.0
        assert not set(group[train]) & set(group[test])
        assert np.isnan(time[train]).any()


def test_times_in_any_form():
    days = np.datetime64("2024-01-01") + np.arange(5)
    expected = days.astype("datetime64[s]").astype(float)
    for form in (days, days.astype(str), pd.Series(days)):
        np.testing.assert_array_equal(time_of_rows(form, "t"), expected)
    assert time_of_rows([3, 1, 2], "t").tolist() == [3.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="neither dates nor numbers"):
        time_of_rows(["spring", "autumn"], "t")
    with pytest.raises(ValueError, match="2 distinct values"):
        time_splits(
            Design(np.array([1.0, 2.0, 2.0]), None), 0.0, False, np.ones(3, bool)
        )


@pytest.fixture(scope="module")
def drifting():
    """Return a table whose relation to the label turns with time."""
    rng = np.random.default_rng(2)
    n = 1200
    day = np.sort(rng.integers(0, 300, n))
    a, b = rng.normal(size=n), rng.normal(size=n)
    turn = day / 300
    y = (1 - turn) * a + turn * b + 0.5 * rng.normal(size=n) > 0.7
    when = np.datetime64("2024-01-01") + day
    frame = pd.DataFrame(
        {"when": when, "a": a, "b": b, "kind": rng.choice(["u", "v"], n)}
    )
    return frame, y


def test_the_estimate_is_that_of_the_last_blocks(drifting, tmp_path):
    frame, y = drifting
    model = AUCClassifier([BAM()], time="when", random_state=0).fit(frame, y)
    when = frame["when"].to_numpy().astype(float)
    cuts = [np.quantile(when, k / 10, method="higher") for k in range(5, 10)]
    logits, errors, areas = [], [], []
    for start, end in pairwise([*cuts, np.inf]):
        block = (when >= start) & (when < end)
        area, _, _, se = auc_interval(y[block], model.out_of_fold_[block])
        areas.append(area)
        logits.append(np.log(area / (1 - area)))
        errors.append((se / area / (1 - area)) ** 2)
    value = (areas[-1] + areas[-2]) / 2
    between = max(0.0, np.var(logits, ddof=1) - np.mean(errors))
    deviation = np.sqrt(between + (between + np.mean(errors)) / 2)
    centre = np.log(value / (1 - value))
    limits = centre + stats.t(4).ppf([0.025, 0.975]) * deviation
    expected = [value, *1 / (1 + np.exp(-limits)), deviation * value * (1 - value)]
    np.testing.assert_allclose(model.auc_, expected, rtol=1e-12)
    assert "95 % prediction interval for a later period" in model.explain()
    model.save(tmp_path / "m.aucmax")
    assert aucmax.load(tmp_path / "m.aucmax").estimate() == model.estimate()
    rare = frame.assign(when=np.where(when < cuts[3], "2024-01-01", "2024-02-01"))
    rare.loc[:3, "when"] = "2023-12-31"
    with pytest.warns(DataWarning, match="only 1 test block: the column has 3"):
        model = AUCClassifier([BAM()], time="when", random_state=0).fit(rare, y)
    last = when >= cuts[3]
    assert model.auc_ == auc_interval(y[last], model.out_of_fold_[last])
    assert "95 % confidence interval" in model.estimate()
    assert "prediction" not in model.estimate()
    plain = AUCClassifier([BAM()], random_state=0).fit(frame, y)
    assert model.auc_.value < plain.auc_.value - 0.02
    assert any("time='when'" in str(hint) for hint in plain.hints_)
    assert "time='when'" in plain.explain()
    assert model.hints_ == []
    with pytest.raises(ValueError, match="exclude each other"):
        AUCClassifier([BAM()], time="when", cv=3).fit(frame, y)
    with pytest.raises(ValueError, match="no column 'date'"):
        AUCClassifier([BAM()], time="date").fit(frame, y)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_column_of_time_or_of_groups_by_name_or_position(library, drifting):
    frame, y = drifting
    if library != "pandas":
        module = pytest.importorskip(library)
        make = module.from_pandas if library == "polars" else module.Table.from_pandas
        frame = make(frame)
    names = list(frame.columns if library != "pyarrow" else frame.column_names)
    found = [
        AUCClassifier([BAM()], time=one, random_state=0).fit(frame, y).auc_
        for one in ("when", names.index("when"))
    ]
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="no column 99"):
        AUCClassifier([BAM()], group=99).fit(frame, y)


def test_rows_of_weight_zero_do_not_count_in_blocks(drifting):
    frame, y = drifting
    weight = np.ones(len(y))
    weight[-300:][~y[-300:]] = 0.0  # the last blocks have one class
    model = AUCClassifier([BAM()], time="when", random_state=0)
    model.fit(frame, y, sample_weight=weight)
    used = weight > 0.0
    alone = AUCClassifier([BAM()], time="when", random_state=0)
    alone.fit(frame[used], y[used], sample_weight=weight[used])
    assert model.auc_ == alone.auc_
    assert_array_equal(model.out_of_fold_[used], alone.out_of_fold_)


def test_groups_are_kept_together_and_widen_the_interval():
    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(60), 10)
    taste = rng.normal(size=60)[group]
    x = rng.normal(size=600) + taste
    y = x + 2.0 * taste + rng.normal(size=600) > 0.5
    frame = pd.DataFrame({"customer_id": group, "x": x, "kind": "k"})
    frame.loc[::2, "kind"] = "l"
    model = AUCClassifier([BAM()], group="customer_id", random_state=0).fit(frame, y)
    by_rows = AUCClassifier([BAM()], random_state=0).fit(frame, y)
    assert model.auc_.high - model.auc_.low > 1.2 * (
        by_rows.auc_.high - by_rows.auc_.low
    )
    assert not any(one.column == "customer_id" for one in model.importances_)
    given = AUCClassifier([BAM()], drop=["customer_id"], random_state=0)
    given.fit(frame, y, groups=group.astype(str))
    assert given.auc_ == model.auc_
    assert any("group='customer_id'" in str(hint) for hint in by_rows.hints_)
    with pytest.raises(ValueError, match="not both"):
        model.fit(frame, y, groups=group)


def test_hints_of_plain_columns_are_rare():
    rng = np.random.default_rng(4)
    n = 3000
    y = rng.random(n) < 0.3
    columns = {
        "age": rng.integers(18, 90, n),
        "town": rng.choice([f"t{k}" for k in range(50)], n),
        "amount": rng.lognormal(size=n),
        "order_id": np.arange(n),
        "device_id": rng.integers(0, 500, n),  # labels do not agree
    }
    found = find_structure(columns, y)
    assert [(hint.column, hint.kind) for hint in found] == [("order_id", "time")]


def test_leaks_are_named_and_honest_columns_are_not():
    rng = np.random.default_rng(5)
    n = 2000
    y = rng.random(n) < 0.3
    codes = rng.integers(0, 5, n).astype(float)
    told = np.where(y, 3.0, codes % 3)
    paid = np.where(y & (rng.random(n) < 0.3), rng.normal(size=n), np.nan)
    strong = y + 0.4 * rng.normal(size=n)  # AUC 0.96
    near = np.where(y, 1.0, 0.0) + 0.01 * rng.normal(size=n)
    columns = np.column_stack([codes, told, paid, strong, near])
    levels = np.array([5, 5, 0, 0, 0])
    found = find_leaks(columns, levels, ["codes", "told", "paid", "strong", "near"], y)
    assert [leak.column for leak in found] == ["told", "paid", "near"]
    assert "positive rows only" in str(found[1])
    body = np.where(~y & (rng.random(n) < 0.2), rng.normal(size=n), np.nan)
    rare = np.where(np.cumsum(~y) <= 25, np.where(~y, 1.0, np.nan), np.nan)
    columns = np.column_stack([body, rare])  # 25 values of 70 % are chance
    found = find_leaks(columns, np.zeros(2, int), ["body", "rare"], y)
    assert [(leak.column, leak.reason) for leak in found] == [
        ("body", "has a value for negative rows only")
    ]
    frame = pd.DataFrame({"near": near, "x": rng.normal(size=n)})
    with pytest.warns(DataWarning, match="'near' predicts the label nearly alone"):
        AUCClassifier([BAM()], random_state=0).fit(frame, y)
    # Codes of integers and words of texts are further features.
    frame["code"] = rng.integers(0, 30, n) * 7
    frame["note"] = rng.choice([f"some words and more w{k}" for k in range(n)], n)
    with pytest.warns(DataWarning, match="'near' predicts the label nearly alone"):
        AUCClassifier([BAM()], text=["note"], random_state=0).fit(frame, y)


def test_train_with_time_and_group(drifting, tmp_path):
    frame, y = drifting
    path = tmp_path / "t.csv"
    frame.assign(customer=np.arange(len(y)) // 4, y=y.astype(int)).to_csv(
        path, index=False
    )
    out = tmp_path / "m.aucmax"
    options = "--label", "y", "--time", "when", "--group", "customer"
    result = invoke("train", path, "-o", out, *options)
    assert result.exit_code == 0, result.stderr
    model = aucmax.load(out)
    assert model.time == "when"
    result = invoke(
        "train",
        path,
        "-o",
        out,
        "--label",
        "y",
        "--time",
        "when",
        "--algorithm",
        "fast",
    )
    assert result.exit_code != 0
    assert "--time needs the default algorithm" in result.stderr


def test_years_with_months_are_hinted_at():
    rng = np.random.default_rng(0)
    y = rng.random(300) < 0.3
    years, months = rng.integers(2019, 2024, 300), rng.integers(1, 13, 300)
    columns = {"arrival_year": years, "arrival month": months, "yearly_income": years}
    (hint,) = find_structure(columns, y)
    assert hint.column == "arrival_year"
    assert "'arrival month' months" in str(hint)
    assert "join both in one column" in str(hint)
    assert find_structure({"year": years}, y) == []
    assert find_structure({"year": years - 2000, "month": months}, y) == []
