"""Parquet and Arrow: the same table gives the same chunks as CSV."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

from aucmax.io.batch import Position
from aucmax.io.csv_source import CsvSource
from aucmax.io.open_data import open_data

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")
arrow_csv = pytest.importorskip("pyarrow.csv")

from aucmax.io.arrow_source import ArrowSource  # noqa: E402
from aucmax.tables.cells import seconds as _seconds  # noqa: E402
from helpers.frame_source import FrameSource  # noqa: E402


def table(n=500, missing=True):
    rng = np.random.default_rng(0)
    gaps = rng.random((3, n)) < (0.1 if missing else 0.0)
    return pa.table(
        {
            "i": pa.array(rng.integers(-9, 9, n), mask=gaps[0]),
            "x": pa.array(rng.normal(size=n), mask=gaps[1]),
            "c": pa.array(rng.choice(["red", "green", "dark blue"], n), mask=gaps[2]),
            "t": [" ".join(rng.choice(["Ein", "été", "two"], 3)) for _ in range(n)],
            "w": rng.random(n),
            "y": rng.choice(["ham", "spam"], n),
        }
    )


def write(table, path, kind="parquet", rows=70):
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=rows)
    elif kind == "feather":
        feather.write_feather(table, path, chunksize=rows)
    elif kind == "stream":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=rows)
    else:
        arrow_csv.write_csv(table, path)
    return str(path)


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def whole(source, start=Position()):  # noqa: B008
    chunks = list(source.batches(start))
    return {
        "X": np.vstack([dense(chunk.rows) for chunk in chunks]),
        "y": np.concatenate([chunk.labels for chunk in chunks]).tolist(),
        "weight": np.concatenate([chunk.weights for chunk in chunks]).tolist(),
        "extra": [v for chunk in chunks for v in chunk.extra.get("c", [])],
        "bad": [
            (line.line, line.column) for chunk in chunks for line in chunk.malformed
        ],
        "lines": [int(line) for chunk in chunks for line in chunk.line_numbers],
    }


OPTIONS = {"label": "y", "weight": "w", "text": ["t"], "hash_size": 32, "extra": ["c"]}


@pytest.mark.parametrize(
    ("kind", "encode", "missing"),
    [
        ("parquet", "hash", "error"),
        ("parquet", "hash", "impute"),
        ("parquet", "onehot", "error"),
        ("parquet", "onehot", "impute"),
        ("feather", "hash", "zero"),
        ("stream", "onehot", "zero"),
    ],
)
def test_the_same_as_csv(tmp_path, kind, encode, missing):
    options = {**OPTIONS, "encode": encode, "missing": missing}
    path = write(table(), tmp_path / "table", kind)
    ours = ArrowSource([path], **options)
    text = CsvSource([write(table(), tmp_path / "table.csv", "csv")], **options)
    found, expected = whole(ours), whole(text)
    # A mean depends on how the rows are cut, in its last bit.
    rtol, atol = (1e-14, 1e-15) if missing == "impute" else (0, 0)
    np.testing.assert_allclose(found.pop("X"), expected.pop("X"), rtol, atol)
    # Lines of text begin with the header, rows with the first.
    found["bad"] = [(line + 1, column) for line, column in found["bad"]]
    found["lines"] = [line + 1 for line in found["lines"]]
    assert found == expected
    recipes = [json.loads(json.dumps(one.recipe())) for one in (ours, text)]
    assert recipes[0].pop("format") == "parquet"
    assert recipes[1].pop("format") == "csv"
    assert recipes[1].pop("delimiter") is None
    means = [recipe.pop("means") for recipe in recipes]
    np.testing.assert_allclose(*means, rtol, atol)
    assert recipes[0] == recipes[1]
    assert ours.feature_names() == text.feature_names()


def test_a_model_of_one_format_reads_the_other(tmp_path):
    options = {**OPTIONS, "missing": "impute", "encode": "onehot"}
    mixed = table().select(["y", "t", "c", "x", "w", "i"])
    parquet = write(mixed, tmp_path / "table.parquet")
    text = write(table(), tmp_path / "table.csv", "csv")
    recipe = json.loads(json.dumps(CsvSource([text], **options).recipe()))
    found = whole(ArrowSource([parquet], recipe=recipe))
    np.testing.assert_array_equal(found["X"], whole(CsvSource([text], **options))["X"])
    recipe = json.loads(json.dumps(ArrowSource([parquet], **options).recipe()))
    found = whole(CsvSource([text], recipe=recipe))
    expected = whole(ArrowSource([parquet], **options))
    np.testing.assert_array_equal(found["X"], expected["X"])


@pytest.mark.parametrize(
    ("kind", "keep_text"),
    [("parquet", False), ("parquet", True), ("feather", True), ("stream", False)],
)
def test_reading_goes_on_anywhere(tmp_path, kind, keep_text, monkeypatch):
    monkeypatch.setattr("aucmax.io.arrow_source._FEWEST", 16)
    monkeypatch.setattr("aucmax.io.arrow_source._BATCH", 8)
    for i in range(2):
        write(table(100), tmp_path / f"{i}.parquet", kind)

    def source():
        return ArrowSource([str(tmp_path)], keep_text=keep_text, **OPTIONS)

    chunks = list(source().batches())
    assert len(chunks) == 2 * (5 + 2)
    assert chunks[-1].end == (1, 100, 100)
    size = source().size
    assert size - (8 if kind == "stream" else 0) <= chunks[-1].done <= size
    for i, chunk in list(enumerate(chunks))[:: 4 if keep_text else 1]:
        rest = list(source().batches(chunk.end))
        assert len(rest) == len(chunks) - i - 1
        for one, other in zip(chunks[i + 1 :], rest, strict=True):
            np.testing.assert_array_equal(dense(one.rows), dense(other.rows))
            assert one.labels.tolist() == other.labels.tolist()
            assert one.line_numbers.tolist() == other.line_numbers.tolist()
            assert (one.malformed, one.end, one.done) == (
                other.malformed,
                other.end,
                other.done,
            )
            assert (one.text is None) == (not keep_text)
            if keep_text:
                assert one.text.equals(other.text)
                assert one.text.schema.names == table().schema.names
                assert one.text.column("y").to_pylist() == one.labels.tolist()
    with pytest.raises(ValueError, match="there are only 100"):
        list(source().batches(Position(1, 101, 101)))


def test_types(tmp_path):
    n = 4
    columns = {
        "bool": [True, False, True, False],
        "byte": pa.array([1, 2, 3, 255], pa.uint8()),
        "long": [2**53 + 1, -(2**62), 0, 1],
        "half": pa.array(np.array([0.5, 1, 2, 3], np.float16)),
        "float": pa.array([0.1, 1, 2, 3], pa.float32()),
        "decimal": [
            Decimal("1.25"),
            Decimal("-3.00"),
            Decimal("0.01"),
            Decimal("9.99"),
        ],
        "codes": pa.array(["u", "v", None, "u"]).dictionary_encode(),
        "levels": pa.DictionaryArray.from_arrays([0, 1, 1, None], [10, 20]),
        "large": pa.array(["p", "q", None, "é"], pa.large_string()),
        "view": pa.array(["p", "q", None, "é"], pa.string_view()),
        "binary": pa.array([b"p", b"q", None, b"\xff"]),
        "nothing": pa.nulls(n),
        "void": pa.nulls(n).cast(pa.string()).dictionary_encode(),
    }
    path = str(tmp_path / "types.arrow")
    with pa.ipc.new_file(path, pa.table(columns).schema) as writer:
        writer.write_table(pa.table(columns))
    source = ArrowSource([path], missing="zero", encode="onehot")
    (chunk,) = source.batches()
    numbers = ["byte", "long", "half", "float", "decimal"]
    numbers += ["nothing", "void", "bool"]
    assert source.feature_names()[: len(numbers)] == numbers
    expected = [
        [1, 2.0**53, 0.5, np.float32(0.1), 1.25, 0, 0, 1],
        [2, -(2.0**62), 1, 1, -3, 0, 0, 0],
        [3, 0, 2, 2, 0.01, 0, 0, 1],
        [255, 1, 3, 3, 9.99, 0, 0, 0],
    ]
    np.testing.assert_array_equal(dense(chunk.rows)[:, : len(numbers)], expected)
    assert source.feature_names()[len(numbers) :] == [
        *("codes=u", "codes=v"),
        *("levels=10", "levels=20"),
        *("large=p", "large=q", "large=é"),
        *("view=p", "view=q", "view=é"),
        *("binary=\\xff", "binary=p", "binary=q"),
    ]
    same = [[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]
    onehot = np.hstack(
        [
            [[1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]],
            *(same, same, np.roll(same, 1, 1)),
        ]
    )
    np.testing.assert_array_equal(dense(chunk.rows)[:, len(numbers) :], onehot)


@pytest.mark.parametrize(
    "values",
    [
        [dt.timedelta(1)] * 2,
        [[1, 2], [3]],
        [{"a": 1}, {"a": 2}],
    ],
)
def test_types_that_are_no_features(tmp_path, values):
    path = write(pa.table({"x": [1, 2], "odd": values}), tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match=r"column 'odd' .*drop=odd"):
        ArrowSource([path]).recipe()
    np.testing.assert_array_equal(
        next(ArrowSource([path], drop=["odd"]).batches()).rows, [[1], [2]]
    )
    if not isinstance(values[0], list | dict):
        source = ArrowSource([path], categorical=["odd"], encode="onehot")
        assert len(source.feature_names()) == 2


def test_dates_of_all_types(tmp_path):
    moment = dt.datetime(2020, 1, 2, 15, 30, tzinfo=dt.UTC)  # a Thursday
    for values, hour in (
        ([moment] * 2, 15.5),
        ([moment.replace(tzinfo=None)] * 2, 15.5),
        ([moment.date()] * 2, 0.0),
    ):
        path = write(pa.table({"x": [1, 2], "d": values}), tmp_path / "d.parquet")
        (chunk,) = ArrowSource([path]).batches()
        days = (dt.date(2020, 1, 2) - dt.date(1970, 1, 1)).days + hour / 24
        row = [days, 0, 0, 0, 1, 0, 0, 0, hour]
        np.testing.assert_allclose(chunk.rows, [[1, *row], [2, *row]])


def test_bad_rows(tmp_path):
    data = {
        "x": [1.0, np.nan, np.inf, 4.0, 1e300, 6.0, 7.0],
        "c": ["u", "u", "u", None, "u", "u", "u"],
        "w": [1.0, 1, 1, 1, 1, -1.0, None],
        "y": [1, 0, 0, 1, 1, 0, 0],
    }
    path = write(pa.table(data), tmp_path / "bad.parquet")
    options = {"label": "y", "weight": "w", "hash_size": 4, "dtype": np.float32}
    options |= {"encode": "hash", "missing": "error"}
    (chunk,) = ArrowSource([path], keep_text=True, **options).batches()
    assert chunk.rows.shape == (1, 5)
    assert [(line.line, line.column) for line in chunk.malformed] == [
        *((2, "x"), (3, "x"), (4, "c"), (5, "x"), (6, "w"), (7, "w")),
    ]
    assert "missing=impute" in chunk.malformed[0].problem
    assert b"'c': None" in chunk.malformed[2].text
    assert chunk.text.num_rows == 1
    assert chunk.line_numbers.tolist() == [1]
    recipe = ArrowSource([path], **options).recipe()
    (chunk,) = ArrowSource([path], recipe=recipe, labelled=False).batches()
    assert chunk.labels is chunk.weights is None
    assert [line.line for line in chunk.malformed] == [2, 3, 4, 5]


def test_files_that_are_none(tmp_path):
    path = write(table(), tmp_path / "table.parquet")
    content = (tmp_path / "table.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(OSError, match=r"cut.parquet: the file is damaged"):
        ArrowSource([str(tmp_path / "cut.parquet")]).recipe()
    (tmp_path / "hit.parquet").write_bytes(content[:400] + bytes(2000) + content[2400:])
    with pytest.raises(OSError, match=r"hit.parquet: the file is damaged"):
        list(ArrowSource([str(tmp_path / "hit.parquet")], **OPTIONS).batches())
    (tmp_path / "text.parquet").write_bytes(b"a,b\n")
    with pytest.raises(ValueError, match="not a Parquet or Arrow file"):
        ArrowSource([str(tmp_path / "text.parquet")]).recipe()
    with pytest.raises(ValueError, match="standard input"):
        ArrowSource(["-"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "readme").touch()
    with pytest.raises(FileNotFoundError, match="no file in this folder"):
        ArrowSource([str(tmp_path / "empty")])
    with pytest.raises(ValueError, match="delimiter"):
        open_data([path], delimiter=";")


def test_opened_by_name(tmp_path):
    path = write(table(), tmp_path / "table.parquet")
    assert isinstance(open_data([path], **OPTIONS), ArrowSource)
    for name in ("table.ipc", "table.data"):  # a file and a stream
        for make in (pa.ipc.new_file, pa.ipc.new_stream):
            with make(tmp_path / name, table().schema) as writer:
                writer.write_table(table())
            assert isinstance(open_data([str(tmp_path / name)], **OPTIONS), ArrowSource)
    text = write(table(), tmp_path / "table.csv", "csv")
    assert isinstance(open_data([text], **OPTIONS, delimiter=","), CsvSource)


@pytest.mark.parametrize(
    ("kind", "beyond"),
    [
        (pa.date32(), 2**31 - 1),  # PostgreSQL's infinity
        (pa.date32(), -(2**31)),
        (pa.date64(), 2**60),
        (pa.timestamp("s"), 10**15),
        (pa.timestamp("ms"), 2**62),
        (pa.timestamp("us", "UTC"), -(2**62)),
    ],
)
def test_a_date_out_of_range_is_a_bad_row(kind, beyond, tmp_path):
    width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
    values = pa.array([1, 2, None, beyond], width).cast(kind)
    table = pa.table({"d": values, "y": [0, 1, 0, 1]})
    (chunk,) = FrameSource(table, label="y").batches()
    (bad,) = chunk.malformed
    assert (bad.line, bad.column) == (4, "d")
    assert "outside the years 1 to 9999" in bad.problem
    unit = {"date32[day]": 86_400.0, "timestamp[s]": 1.0}.get(str(kind), 1e-3)
    unit = 1e-6 if "us" in str(kind) else unit
    X = chunk.rows.toarray() if hasattr(chunk.rows, "toarray") else chunk.rows
    assert X[:2, 0].tolist() == [unit / 86_400.0, 2 * unit / 86_400.0]


def test_nanoseconds_are_as_they_were():
    whole = [1_700_000_000_123_456_000, -1_000, 0, None]
    column = pa.array(whole, pa.int64()).cast(pa.timestamp("ns"))
    expected = [1_700_000_000_123_456 / 1e6, -1e-6, 0.0]
    found = _seconds(column)
    assert found[:3].tolist() == expected
    assert np.isnan(found[3])


@pytest.mark.parametrize("aside", ["label", "weight"])
def test_dates_are_no_labels_or_weights(aside):
    table = pa.table({"d": pa.array([1, 2], pa.date32()), "x": [0.5, 1.0]})
    with pytest.raises(ValueError, match="'d' has dates, which cannot be labels"):
        FrameSource(table, **{aside: "d"}).schema  # noqa: B018
