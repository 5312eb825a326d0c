"""Kinds of columns: codes among numbers, clock times, months, malformed cells."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import aucmax
from aucmax.core.validation import DataWarning
from aucmax.io.arrow_source import ArrowSource
from aucmax.io.csv_source import CsvSource
from aucmax.io.json_lines import JsonLinesSource
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.schema import Overrides

N = 200


def kinds(frame):
    roles = TableEncoder.fit(frame).schema.roles
    return {role["name"]: role["role"] for role in roles}


def numbers_with(values):
    """Return a column of numbers as text, in which some cells are others."""
    cells = [f"{k % 37}.5" for k in range(N)]
    for place, value in values.items():
        cells[place] = value
    return cells


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "number"),
        ({3: "1.2o3"}, "number"),
        ({3: "1.2o3", 90: "x"}, "number"),
        ({3: "V27", 50: "V27", 120: "V27"}, "category"),
        ({k: f"E{k}" for k in range(0, N, 40)}, "category"),
        ({3: "c", 50: "c", 120: "c"}, "number"),  # the header, again
        ({3: "?", 50: "?", 120: "NA"}, "number"),
    ],
)
def test_numbers_with_other_values(values, kind, tmp_path):
    frame = pd.DataFrame({"c": numbers_with(values), "y": ["a", "b"] * (N // 2)})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    roles = CsvSource([str(path)], label="y").schema.roles
    assert [role["role"] for role in roles] == [kind]
    assert kinds(frame[["c"]]) == {"c": kind}


def test_malformed_cells_of_a_frame_are_missing():
    frame = pd.DataFrame({"c": numbers_with({3: "1.2o3"}), "d": ["u", "v"] * (N // 2)})
    encoder = TableEncoder.fit(frame)
    with pytest.warns(DataWarning, match="in 'c' count as missing"):
        X = encoder.transform(frame).toarray()
    plain = TableEncoder.fit(frame.assign(c=numbers_with({3: None})))
    assert X[3, 0] == pytest.approx(np.median([k % 37 + 0.5 for k in range(N)]), abs=1)
    assert X.shape[0] == N
    assert plain.transform(frame[:1]).shape[1] in (X.shape[1], X.shape[1] + 1)


def test_a_blend_learns_from_a_table_with_codes_and_malformed_cells():
    rng = np.random.default_rng(0)
    codes = rng.choice(["250.01", "V27", "E888", "401", "486"], N)
    frame = pd.DataFrame({"diag": codes, "x": numbers_with({7: "n.a"})})
    y = (codes == "V27") | (rng.random(N) < 0.1)
    model = aucmax.AUCClassifier([aucmax.BAM()], cv=3, random_state=0)
    with pytest.warns(DataWarning, match="in 'x' count as missing"):
        model.fit(frame, y)
    assert model.score(frame.assign(x=1.0), y) > 0.8
    assert {one.name: one.kind for one in model.columns_}["diag"] == "categorical"


@pytest.mark.parametrize(
    ("cells", "hours"),
    [
        (["10:30", "0:00", "23:59"], [10.5, 0.0, 23 + 59 / 60]),
        (["10:30:36", "00:00:00"], [10.51, 0.0]),
        (["9:05 pm", "12:00 AM", "12:30 p.m."], [21 + 5 / 60, 0.0, 12.5]),
    ],
)
def test_clock_times_are_hours(cells, hours):
    column = [cells[k % len(cells)] for k in range(N)]
    encoder = TableEncoder.fit(pd.DataFrame({"t": column}))
    X = encoder.transform(pd.DataFrame({"t": cells}))
    np.testing.assert_allclose(np.asarray(X)[:, 0], hours, atol=0.001)


@pytest.mark.parametrize("cells", [["2024-01", "1969-12"], ["01/2024", "12/1969"]])
def test_months_are_dates(cells):
    column = [cells[k % 2] for k in range(N)]
    frame = pd.DataFrame({"t": column})
    assert kinds(frame) == {"t": "date"}
    X = np.asarray(TableEncoder.fit(frame).transform(frame[:2]))
    assert X[:, 0].tolist() == [19723.0, -31.0]  # days since 1970


def test_an_encoder_is_json():
    batch = pa.RecordBatch.from_pydict(
        {"x": [1.0, None, 3.0] * 20, "c": ["a", "b", "c"] * 20, "t": ["10:30"] * 60}
    )
    encoder = TableEncoder.fit(batch)
    again = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    found, expected = again.transform(batch), encoder.transform(batch)
    assert (found != expected).nnz == 0
    names = again.get_feature_names_out()
    assert len(names) == len(again.column_of_feature) == found.shape[1]
    assert names[:3] == ["x", "t", "x is missing"]
    assert set(again.column_of_feature) == {"x", "t", "c"}


GERMAN = ["1.234,50", "999,90", "2.500", "0,5", "12"]
OF_ONE_FORMAT = [  # cells of a column, then other cells and what they are
    (GERMAN, {"2.500": 2500, "12.500": 12500, "1.234.567": 1234567, "7": 7}),
    (GERMAN, {"1e3": 1000, "1,5E3": 1500, "-2.500,25": -2500.25, "1234,5": 1234.5}),
    (GERMAN, dict.fromkeys(["2.5", "0.500", "1234.5", "12.34,5", "1,2,3"])),
    (GERMAN, dict.fromkeys(["1.234e5", "1.234,5e2", "inf"])),
    ([*GERMAN, "5 €"], {"2.500 €": 2500, "1.234,50 €": 1234.5, "2.5 €": None}),
    ([*["2.500", "12.500", "7"] * 6, "1.234,50"], {"2.500": 2500, "2.5": None}),
    (["1.234.567", "2.500", "12.500"], {"2.500": 2500, "1.234,5": 1234.5}),
    (["1,234.50", "999.90", "12"], {"1.234": 1.234, "1,234": 1234, "0,5": None}),
    (["1,234.50", "999.90", "12"], dict.fromkeys(["0,500", "12,34", "1.234,5"])),
    (["12,5%", "3 %", "1.234,5 %"], {"2.500 %": 25, "7,125%": 0.07125, "2.5%": None}),
    (["7,125%", "3,250 %"], {"7,125%": 0.07125, "12%": 0.12}),
    (["12.5%", "3 %"], {"1,234 %": 12.34, "1,234.5%": 12.345, "12,5%": None}),
    (["2.500", "12.500"], {"2.500": 2.5, "1.234,50": None}),
]


@pytest.mark.parametrize(("cells", "read"), OF_ONE_FORMAT)
def test_a_column_has_one_decimal_separator(cells, read, tmp_path):
    column = [cells[i % len(cells)] for i in range(N)]
    frame = pd.DataFrame({"c": column, "d": [f"{k}.5" for k in range(N)]})
    later = pd.DataFrame({"c": list(read), "d": 1.5})
    values = [np.nan if value is None else value for value in read.values()]
    bad = [k + 2 for k, value in enumerate(read.values()) if value is None]
    for name, one in (("a", frame), ("b", later)):
        one.to_csv(tmp_path / f"{name}.csv", index=False, sep=";")
    source = CsvSource([str(tmp_path / "a.csv")])
    recipe = source.recipe() | {"missing": "keep"}
    (batch,) = CsvSource([str(tmp_path / "b.csv")], recipe=recipe).batches()
    encoder = TableEncoder.from_json(recipe)
    assert encoder.schema.notation == TableEncoder.fit(frame).schema.notation
    place = encoder.column_of_feature.index("c")
    np.testing.assert_allclose(
        batch.rows[:, place], [value for value in values if value == value]
    )
    assert [line.line for line in batch.malformed] == bad
    for rows in (later, *(later[k : k + 1] for k in range(len(later)))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            X = encoder.transform(rows)
        np.testing.assert_allclose(X[:, place], np.array(values)[rows.index])


def test_the_decimal_separator_of_the_user_decides():
    cells = ["2.500", "12.500", "7"] * 40
    for decimal, value in ((",", 2500.0), (".", 2.5), (None, 2.5)):
        encoder = TableEncoder.fit(pa.table({"c": cells}), Overrides(decimal=decimal))
        assert encoder.transform(pa.table({"c": ["2.500"]}))[0, 0] == value
    plain = TableEncoder.fit(
        pa.table({"c": ["0.25", "7"] * 60}), Overrides(decimal=",")
    )
    assert plain.transform(pa.table({"c": ["0.125"]}))[0, 0] == 0.125


def test_a_number_by_its_type_has_no_decimal_separator():
    frame = pd.DataFrame({"c": [*["1.234,50", "999,9", 2.125, 7] * 30]}, dtype=object)
    encoder = TableEncoder.fit(frame)
    assert encoder.schema.notation == {"c": "comma"}
    together = encoder.transform(frame)[:4, 0]
    np.testing.assert_array_equal(together, [1234.5, 999.9, 2.125, 7.0])
    alone = [encoder.transform(frame[k : k + 1])[0, 0] for k in range(4)]
    np.testing.assert_array_equal(alone, together)


DAYS = [f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(N)]


@pytest.mark.parametrize("moment", [1704067200, 1704067200000, 20240101, 2024, 45292.5])
@pytest.mark.parametrize("typed", [True, False])
def test_a_number_is_never_a_date(moment, typed, tmp_path):
    frame = pd.DataFrame({"t": pd.to_datetime(DAYS) if typed else DAYS, "x": range(N)})
    encoder = TableEncoder.fit(frame, Overrides(missing="keep", encode="codes"))
    later = pd.DataFrame({"t": [moment, None], "x": 1})
    with pytest.warns(DataWarning, match="in 't' count as missing"):
        X = encoder.transform(later)
    place = encoder.column_of_feature.index("t")
    assert np.isnan(X[:, place]).all()
    recipe = {"format": "parquet", **encoder.to_json()}
    later.to_parquet(tmp_path / "a.parquet")
    later.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    later.to_csv(tmp_path / "a.csv", index=False)
    for reader, form in (
        *((ArrowSource, "parquet"), (JsonLinesSource, "jsonl"), (CsvSource, "csv")),
    ):
        source = reader([str(tmp_path / f"a.{form}")], recipe=recipe)
        (batch,) = source.batches()
        (bad,) = batch.malformed
        assert (bad.line, bad.column) == (1 + (form == "csv"), "t")
        assert "as a date" in bad.problem
        assert batch.rows.shape[0] == 1


def test_a_column_of_numbers_cannot_be_made_dates(tmp_path):
    frame = pd.DataFrame({"t": [20240101 + k % 28 for k in range(N)], "x": range(N)})
    with pytest.raises(ValueError, match=r"'t' has numbers, such as 20240101.*2024-01"):
        TableEncoder.fit(frame, Overrides(date=["t"]))
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match="'t' has numbers"):
        CsvSource([str(tmp_path / "a.csv")], date=["t"]).schema  # noqa: B018
