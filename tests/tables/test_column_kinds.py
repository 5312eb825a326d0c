"""Kinds of columns: codes among numbers, clock times, months, malformed cells."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import aucmax
from aucmax.core.validation import DataWarning
from aucmax.io.csv_source import CsvSource
from aucmax.tables.encoder import TableEncoder

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
    with pytest.warns(DataWarning, match="as missing, in 'c'"):
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
    with pytest.warns(DataWarning, match="as missing, in 'x'"):
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
