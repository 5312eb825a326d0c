"""AUCStream on data frames and lists of dictionaries."""

import pickle
from datetime import date, datetime

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

import aucmax
from aucmax import AUCStream
from aucmax.core.validation import DataWarning
from aucmax.workflows.score import Model

pandas = pytest.importorskip("pandas")


def table(n, seed=0):
    """Return a table with a category, missing numbers and a nonlinear effect."""
    rng = np.random.default_rng(seed)
    size, other = rng.normal(size=(2, n))
    town = rng.choice(["York", "Bath", "Hull"], n)
    odds = 2.0 * np.abs(size) - 2.5 + 2.0 * (town == "Bath")
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    other[rng.random(n) < 0.2] = np.nan
    return pandas.DataFrame({"size": size, "other": other, "town": town}), y


def records(frame):
    """Return dictionaries without the keys of missing values."""
    rows = frame.to_dict("records")
    return [{k: v for k, v in row.items() if v == v} for row in rows]


@pytest.mark.parametrize("form", [lambda frame: frame, records], ids=["frame", "dicts"])
def test_tables_in_chunks(form, tmp_path):
    frame, y = table(4000)
    model = AUCStream(random_state=0)
    for start in range(0, 4000, 500):
        part = slice(start, start + 500)
        model.partial_fit(form(frame[part]), y[part], classes=[False, True])
    test, label = table(2000, seed=1)
    assert model.score(form(test), label) > 0.8
    assert model.refits_[0] > 2
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    expected = model.decision_function(test)
    assert_array_equal(twin.decision_function(form(test)), expected)
    for one in (model, twin):
        one.partial_fit(form(test), label)
    assert_array_equal(
        twin.decision_function(test), model.decision_function(form(test))
    )


def test_fit_accepts_tables():
    frame, y = table(1500)
    model = AUCStream(random_state=0).fit(frame, np.where(y, "yes", "no"))
    assert model.score(frame, np.where(y, "yes", "no")) > 0.8
    assert model.predict_proba(frame).shape == (1500, 2)


def test_numbers_stay_numbers():
    X, y = np.random.default_rng(0).normal(size=(1500, 2)), np.arange(1500) % 2
    frame = pandas.DataFrame(X, columns=["a", "b"])
    model = AUCStream(random_state=0).partial_fit(frame[:200], y[:200])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[["b", "a"]], y)
    model.partial_fit(frame[200:], y[200:])
    assert model.encoder_ is None
    plain = AUCStream(random_state=0).partial_fit(X, y)
    expected = plain.decision_function(np.asfortranarray(X))  # as pandas stores it
    assert_array_equal(model.decision_function(frame), expected)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        plain.partial_fit(X, y)
    assert AUCStream().partial_fit(pandas.DataFrame(X), y).encoder_ is not None


def test_a_missing_number_may_come_at_any_time(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(1500, 2)), np.arange(1500) % 2
    frame = pandas.DataFrame(X, columns=["a", "b"])
    gap, known = frame[:3].copy(), frame[:3].copy()
    gap.loc[1, "b"], known.loc[1, "b"] = np.nan, np.median(X[:1000, 1])
    model = AUCStream(random_state=0).partial_fit(frame, y)
    model.save(tmp_path / "model")
    for one in (model, aucmax.load(tmp_path / "model")):
        expected = one.decision_function(known)
        assert_array_equal(one.decision_function(gap), expected)
        assert_array_equal(one.decision_function(gap[1:2]), expected[1:2])
        one.partial_fit(gap, y[:3])
    twin = AUCStream(random_state=0).partial_fit(frame, y).partial_fit(known, y[:3])
    assert_array_equal(twin.decision_function(frame), model.decision_function(frame))


def polars_frame(frame):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(frame.to_dict("list"), nan_to_null=True)


def arrow_table(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


FORMS = {
    "frame": lambda frame: frame,
    "dicts": records,
    "polars": polars_frame,
    "arrow": arrow_table,
    "numbers": lambda frame: frame[["size", "other"]],
    "float32": lambda frame: frame[["size", "weight"]].astype(np.float32),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_model_does_not_depend_on_chunks(form, tmp_path):
    frame, y = table(2300)
    frame["weight"] = np.random.default_rng(1).poisson(0.3, len(y))
    frame["late"] = np.where(np.arange(len(y)) < 1100, 0.0, frame["size"])
    frame["when"] = pandas.Timestamp("2024-05-06")
    files, weight = [], np.where(np.arange(len(y)) % 10, 1.0, 0.0)
    make = FORMS[form]
    for sizes in ([1] * 40, [5, 995, 1], [1000], [2300]):
        model, start = AUCStream(random_state=0), 0
        for k, size in enumerate([*sizes, *([300] * 8)]):
            part = slice(start, min(start + size, len(y)))
            if part.start >= len(y):
                break
            rows, start = make(frame[part]), part.stop
            model.partial_fit(rows, y[part], [False, True], weight[part])
            if k == len(sizes):  # a model that still keeps rows, and one that does not
                assert np.isfinite(model.decision_function(rows)).all()
                model.save(tmp_path / "part")
                model = aucmax.load(tmp_path / "part")
        model.finish().save(tmp_path / "model")
        files.append((tmp_path / "model").read_bytes())
    assert len(set(files)) == 1


@pytest.mark.parametrize("form", [lambda frame: frame, records], ids=["frame", "dicts"])
def test_few_rows_make_a_model_that_continues_after_loading(form, tmp_path):
    frame, y = table(900)
    models = [AUCStream(random_state=0) for _ in range(3)]
    for model, size in zip(models, (900, 300, 7), strict=True):
        for start in range(0, 900, size):
            part = slice(start, start + size)
            model.partial_fit(form(frame[part]), y[part], classes=[False, True])
            if size == 300:
                model.decision_function(form(frame))
    test, label = table(2000, seed=1)
    expected = models[0].decision_function(form(test))
    assert models[0].score(form(test), label) > 0.65
    models[0].finish().save(tmp_path / "model")
    models.append(aucmax.load(tmp_path / "model"))
    models.append(pickle.loads(pickle.dumps(models[0])))
    for model in models:
        assert_array_equal(model.decision_function(form(test)), expected)
        assert model.predict_proba(form(test[:1])).shape == (1, 2)
        assert len(model.leaderboard_) == 6
        assert model.members_.keys() == models[0].members_.keys()
        assert model.coef_.shape == (1, len(model.members_["SPAM()"].coef_[0]))
        assert model.refits_ == (0, 0)
        assert np.isfinite(model.drift_.gain)
        assert model.progressive_auc[1] > 0
    states = []
    for model in models:
        model.partial_fit(form(test), label).save(tmp_path / "model")
        states.append((tmp_path / "model").read_bytes())
    assert len(set(states)) == 1


def test_files_of_few_rows_are_scored_by_the_command_line_alike(tmp_path):
    frame, y = table(300)
    AUCStream(random_state=0).partial_fit(frame, y).save(tmp_path / "model")
    twin, loaded = aucmax.load(tmp_path / "model"), Model.load(tmp_path / "model")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    source = loaded.open([str(tmp_path / "rows.csv")])
    found = np.concatenate([loaded.score(batch.rows) for batch in source.batches()])
    assert_allclose(found, twin.decision_function(frame), rtol=1e-9)


def some(rows, start, stop):
    arrow = hasattr(rows, "column_names")
    return rows.slice(start, stop - start) if arrow else rows[start:stop]


@pytest.mark.parametrize("value", [0.0, np.nan, None], ids=str)
@pytest.mark.parametrize("form", ["frame", "dicts", "arrow"])
@pytest.mark.filterwarnings("ignore:The stream changes")
def test_a_number_that_starts_later_is_used(form, value):
    rng = np.random.default_rng(0)
    x, late = rng.normal(size=(2, 5000)).round(3)
    y = rng.random(5000) < 1.0 / (1.0 + np.exp(2.0 - x - 2.0 * late))
    frame = pandas.DataFrame({"x": x, "late": late, "town": "York"})
    frame["late"] = frame["late"].astype(object if value is None else float)
    frame.loc[: 1199 if value is not None else 899, "late"] = value
    rows = frame.to_dict("records") if form == "dicts" else FORMS[form](frame)
    for size in (400, 3500):
        model = AUCStream(random_state=0)
        for start in range(0, 3500, size):
            stop = min(start + size, 3500)
            model.partial_fit(some(rows, start, stop), y[start:stop], [False, True])
        assert model.score(some(rows, 3500, 5000), y[3500:]) > 0.86


def test_categories_that_come_later_are_learnt():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 40, 12_000)
    town[:1500] %= 20
    y = rng.random(12_000) < 1.0 / (1.0 + np.exp(2.0 - (town * 7 % 40) / 10.0))
    names = np.array([f"town {k}" for k in range(40)])[town]
    frame = pandas.DataFrame({"town": names, "state": np.where(town < 20, "a", "b")})
    model = AUCStream(random_state=0)
    for start in range(0, 10_000, 500):
        part = slice(start, start + 500)
        model.partial_fit(frame[part], y[part], classes=[False, True])
    optimum = AUCStream(random_state=0).fit(frame[1500:10_000], y[1500:10_000])
    best = optimum.score(frame[10_000:], y[10_000:])
    assert model.score(frame[10_000:], y[10_000:]) > best - 0.01


def test_columns_that_nothing_is_known_of_are_named():
    rows = [{"a": float(i % 7), "b": None} for i in range(1000)]
    model = AUCStream(random_state=0).partial_fit(rows[:999], np.arange(999) % 2)
    with pytest.warns(DataWarning, match=r"without a value in the first 1,000 .*'b'"):
        model.partial_fit(rows[999:], [1])
    with pytest.warns(DataWarning, match="first rows of the stream lack .* 'c'"):
        model.partial_fit([{"a": 1.0, "c": 3}], [1])


LATER = {  # values of the first 600 rows, and of the rows from there or from 1100 on
    "several types": ([0, 1, 2], [1, 2.0, "x", True, None, "2"]),
    "decimal commas": ([2.125, 7.5, 3.25], ["1.234,50", "999,9", "2,5"]),
    "text": ([5, 7, 3, 1], ["x", "y"]),
    "boolean, then numbers": ([True, False], [2.5, None]),
    "large integers": ([1, 2], [2**60, 2.5]),
    "dates": ([datetime(2020, 1, 2, 9), datetime(2021, 5, 6)], [date(2020, 3, 4)]),
    "date, then text": ([date(2020, 3, 4), date(2021, 3, 4)], ["2024-05-06"]),
    "key": ([None], ["u", "v"]),
}


@pytest.mark.parametrize("form", ["dicts", "frame"])
@pytest.mark.parametrize("start", [600, 1100])
@pytest.mark.parametrize("name", LATER)
def test_types_may_change(name, start, form):
    first, later = LATER[name]
    values = [*first * 1200][:start] + [*later * 1200][: 1400 - start]
    rows = [{"a": v, "b": i % 5, "c": "pqr"[i % 3]} for i, v in enumerate(values)]
    y, found = np.random.default_rng(0).random(1400) < 0.4, []
    if form == "frame":
        rows = pandas.DataFrame(rows).astype({"a": object})
    for size in (7, 501, 1000, 1400):
        model = AUCStream(random_state=0)
        for place in range(0, 1400, size):
            part = slice(place, place + size)
            some = rows[part]
            if form == "frame" and name != "key":  # whose type is that of all rows
                some = some.infer_objects()
            model.partial_fit(some, y[part], classes=[False, True])
        found.append(model.decision_function(rows))
    for scores in found[1:]:
        assert_array_equal(scores, found[0])


def test_a_column_of_any_chunk_is_in_all_later_ones():
    frame, y = table(900)
    model = AUCStream().partial_fit(frame[:300].drop(columns="other"), y[:300])
    model.partial_fit(frame[300:600], y[300:600])
    assert model.n_features_in_ == 3
    with pytest.raises(ValueError, match="no column 'other'"):
        model.partial_fit(frame[600:].drop(columns="other"), y[600:])


@pytest.mark.parametrize("form", [lambda frame: frame, records], ids=["frame", "dicts"])
def test_masked_labels_are_refused_in_the_first_rows(form):
    frame, y = table(300)
    masked = np.ma.array(y, mask=np.arange(300) < 100)
    with pytest.raises(ValueError, match="y is a masked array with 100 masked"):
        AUCStream().partial_fit(form(frame), masked, classes=[False, True])


@pytest.mark.parametrize("rows", [300, 1200])
def test_lists_are_refused_at_any_time(rows):
    frame, y = table(1500)
    model = AUCStream().partial_fit(frame[:rows], y[:rows])
    lists = frame[:3].assign(town=[[1], [2], [3]])
    with pytest.raises(ValueError, match="'town' has the type list"):
        model.partial_fit(lists, y[:3])
    with pytest.raises(ValueError, match="'town' has the type list"):
        model.decision_function(lists)


def test_a_refused_chunk_does_not_matter():
    frame, y = table(1500)
    model, twin = AUCStream(random_state=0), AUCStream(random_state=0)
    twin.partial_fit(frame, y)
    for start in range(0, 1500, 300):
        part = slice(start, start + 300)
        bad = frame[part].copy()
        bad.iloc[7, 0] = np.inf
        with pytest.raises(ValueError, match=r"infinity at row 7|row 8, column size"):
            model.partial_fit(bad, y[part], classes=[False, True])
        if start:
            with pytest.raises(ValueError, match="no column"):
                model.partial_fit(frame[part][["size", "other"]], y[part])
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.partial_fit(frame[part], y[:299], classes=[False, True])
        model.partial_fit(frame[part], y[part], classes=[False, True])
    assert_array_equal(model.decision_function(frame), twin.decision_function(frame))


def test_rows_that_cannot_be_kept_are_refused():
    frame, y = table(100)
    model = AUCStream().partial_fit(frame, y)
    with pytest.raises(ValueError, match="this stream began with tables"):
        model.partial_fit(frame[["size"]].to_numpy(), y)
    with pytest.raises(ValueError, match=r"one dictionary.* pass \[X\]"):
        model.partial_fit({"size": 1.0, "town": "York"}, [True])
    with pytest.raises(ValueError, match="one dictionary"):
        model.predict({"size": 1.0, "town": "York"})
    none = AUCStream().partial_fit(frame, y, sample_weight=np.zeros(100))
    with pytest.raises(NotFittedError):
        none.predict(frame)


@pytest.mark.parametrize("damage", ["bytes", "short", "weights", "seed", "numbers"])
def test_damaged_first_rows_are_refused(damage):
    frame, y = table(100)
    state = AUCStream(random_state=0).partial_fit(frame, y).state()
    rows = state.arrays["first.rows"].copy()
    if damage == "bytes":
        rows[3::7] ^= 0x55AA55
    if damage == "short":
        rows = rows[: len(rows) // 2]
    state.arrays["first.rows"] = rows
    if damage == "weights":
        state.arrays["first.signed"] = np.ones(99)
    if damage == "seed":
        state.header["first"]["seed"] = 2**70
    if damage == "numbers":
        state.header["first"]["numeric"] = "object"
    with pytest.raises(ValueError, match=r"first rows|random seed"):
        AUCStream.from_state(state)


def test_unknown_categories_and_keys_are_accepted():
    rows = [{"a": float(i % 7), "b": "xy"[i % 2]} for i in range(100)]
    y = np.arange(100) % 2
    model = AUCStream().partial_fit(rows, y)
    model.partial_fit([{"b": "new"}, {"a": 1.0, "c": 3}], [0, 1])
    assert np.isfinite(model.decision_function([{"a": 2.0}, {"b": "other"}])).all()


def with_names(n, seed=0):
    """Return a table with a column of many names, some of which matter."""
    frame, y = table(n, seed)
    rng = np.random.default_rng(seed + 10)
    who = rng.integers(0, 20_000, n)
    frame["name"] = np.where(rng.random(n) < 0.5, "Smith", [f"name {i}" for i in who])
    y = np.where((frame["name"] != "Smith") & (who % 5 == 0), rng.random(n) < 0.9, y)
    return frame, y


def test_many_categories_do_not_stop_the_trees():
    frame, y = with_names(6000)
    model = AUCStream(random_state=0).fit(frame, y)
    assert model.n_features_in_ > 2000
    assert model.refits_[0] > 0
    assert model._trees.columns.width < 20
    test, label = with_names(3000, seed=1)
    linear = AUCStream(nonlinear=False, random_state=0).fit(frame, y)
    assert model.score(test, label) > linear.score(test, label) + 0.02


def test_many_categories_in_chunks_and_from_files(tmp_path):
    frame, y = with_names(6000)
    encoder = AUCStream().fit(frame, y).encoder_
    X, models = encoder.transform(frame), []
    for size in (6000, 700):
        model = AUCStream(random_state=0, reservoir=1500)
        model.set_categories(encoder.category_of_feature)
        for start in range(0, 6000, size):
            part = slice(start, start + size)
            model.partial_fit(X[part], y[part], classes=[False, True])
            if size == 700:
                model.save(tmp_path / "part")
                model = aucmax.load(tmp_path / "part")
        models.append(model.finish())
    assert models[0].refits_[0] > 2
    assert models[0]._trees.forest.encoding is not None
    for k, model in enumerate(models):
        model.save(tmp_path / f"model {k}")
    assert (tmp_path / "model 0").read_bytes() == (tmp_path / "model 1").read_bytes()
    with pytest.raises(ValueError, match="before the first row"):
        model.set_categories(encoder.category_of_feature)
    model = AUCStream()
    model.set_categories(encoder.category_of_feature[:-1])
    with pytest.raises(ValueError, match="set_categories was given shape"):
        model.partial_fit(X[:100], y[:100])


def test_dictionaries_with_values_of_several_types():
    rng = np.random.default_rng(0)
    values = [8001, "x", 9000.0, True, None]
    codes = rng.integers(0, 5, 2000)
    rows = [{"code": values[k], "size": float(k)} for k in codes]
    y = rng.random(2000) < np.where(codes == 1, 0.8, 0.2)
    model = AUCStream(random_state=0)
    for start in range(0, 2000, 500):
        model.partial_fit(rows[start : start + 500], y[start : start + 500])
    scores = model.decision_function(rows)
    alone = [model.decision_function([row])[0] for row in rows[:20]]
    assert_array_equal(alone, scores[:20])
    huge = model.decision_function([{"code": 2**70, "size": 1.0}])
    assert np.isfinite(huge).all()


@pytest.mark.parametrize("nonlinear", [False, True])
@pytest.mark.parametrize("n_features", [1, 3])
def test_equal_rows_do_not_spoil_the_calibration(n_features, nonlinear):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, n_features))
    X = np.vstack([X, np.ones((3000, n_features)), X])  # a sensor that is stuck
    y = X[:, 0] + rng.normal(size=len(X)) > 0.5
    y[1500:4500] = rng.random(3000) < 0.3
    model = AUCStream(nonlinear=nonlinear, random_state=0)
    model.partial_fit(X[:4500], y[:4500])
    assert np.abs(model.decision_function(X)).max() < 100.0
    model.partial_fit(X[4500:], y[4500:])
    assert model.score(X[4500:], y[4500:]) > 0.7
    assert np.abs(model.decision_function(X)).max() < 100.0
