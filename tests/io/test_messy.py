"""Tables as people have them: the same columns, features and notes from every form."""

import csv
import gzip
import json
import warnings
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import aucmax
from aucmax.io.arrow_source import ArrowSource
from aucmax.io.csv_source import CsvSource
from aucmax.io.json_lines import JsonLinesSource
from aucmax.io.recipe import check_recipe
from aucmax.tables.labels import _NUMBER, Task
from aucmax.tables.number_formats import _READERS, find_notation
from helpers.commands import invoke
from helpers.frame_source import FrameSource

N = 120
RNG = np.random.default_rng(0)
NUMBERS = [f"{value:.3f}" for value in RNG.normal(size=N)]
LABELS = ["yes" if value else "no" for value in RNG.random(N) < 0.3]


def cycle(*values):
    """Return so many cells, over and over."""
    return [values[i % len(values)] for i in range(N)]


# A column, what it is, and its features.
CASES = {
    "plain": (NUMBERS, "number", ["c"]),
    "gaps": (cycle("1.5", "NA", "2", "", "7"), "number", ["c", "c is missing"]),
    "percent": (cycle("12%", "3.5 %", "100%"), "number", ["c"]),
    "thousands": (cycle("1,234.5", "950", "12,000"), "number", ["c"]),
    "commas": (cycle("3,14", "-1,5", "1.234,5"), "number", ["c"]),
    "yes or no": (cycle("Yes", "no", "NO ", "yes"), "yes/no", ["c=yes"]),
    "truth": (cycle("TRUE", "False"), "yes/no", ["c=true"]),
    "words": (
        cycle("nurse", "clerk", "pilot"),
        "category",
        ["c=clerk", "c=nurse", "c=pilot", "c=(other)"],
    ),
    "words and gaps": (
        cycle("nurse", "", "?"),
        "category",
        ["c=nurse", "c=(missing)", "c=(other)"],
    ),
    "few numbers": (
        cycle("1", "2", "A", "B", "C"),
        "category",
        ["c=1", "c=2", "c=A", "c=B", "c=C", "c=(other)"],
    ),
    "codes": ([f"k{i:04}x" for i in range(N)], "identifier", []),
    "row numbers": ([str(i + 7) for i in range(N)], "identifier", []),
    "words for nothing": (
        cycle("1.5", "NULL", "null", "None", "n/a", "7"),
        *("number", ["c", "c is missing"]),
    ),
    "one gap": (["", *NUMBERS[1:]], "number", ["c", "c is missing"]),
    "powers of ten": (cycle("1e-3", "2.5E+2", "+4", "-.5"), "number", ["c"]),
    "blanks about": (cycle(" 1.5", "2 ", "  3  "), "number", ["c"]),
    "zeros before": (cycle("00123", "00045", "10001"), "number", ["c"]),
    "zero or one": (cycle("0", "1", "1"), "number", ["c"]),
    "millions": (cycle("-1,234", "5,000,000", "12"), "number", ["c"]),
    "dollars": (cycle("$1,234.50", "-$12", "$3"), "number", ["c"]),
    "euros": (cycle("12 €", "3,50 €", "1.234,00 €"), "number", ["c"]),
    "blanks within": (cycle("1 234", "12 000,5", "950"), "number", ["c"]),
    "years": (cycle("1999", "2004", "2011"), "number", ["c"]),
    "seconds since 1970": (
        [str(1_700_000_000 + 997 * i) for i in range(N)],
        *("number", ["c"]),
    ),
    "large numbers": ([str(4 * 10**18 + 7919 * i) for i in range(N)], "number", ["c"]),
    "t or f": (cycle("t", "f"), "yes/no", ["c=t"]),
    "on or off": (cycle("On", "off", "", "off"), "yes/no", ["c=on"]),
    "ja oder nein": (cycle("ja", "nein"), "yes/no", ["c=ja"]),
    "letters of the world": (
        cycle("Zürich", "Köln", "東京"),
        *("category", ["c=Köln", "c=Zürich", "c=東京", "c=(other)"]),
    ),
    "quotes, commas, lines": (
        cycle('say "hi"', "a, b", "two\nlines"),
        *("category", ["c=a, b", 'c=say "hi"', "c=two\nlines", "c=(other)"]),
    ),
    "words and blanks": (
        cycle("red", " red", "blue "),
        *("category", ["c=blue", "c=red", "c=(other)"]),
    ),
    "ranges": (
        cycle("0-9", "10-19"),
        *("category", ["c=0-9", "c=10-19", "c=(other)"]),
    ),
    "units": (cycle("12 kg", "3 kg"), "category", ["c=12 kg", "c=3 kg", "c=(other)"]),
    "one that is rare": (
        ["b", *cycle("a")[1:]],
        *("category", ["c=a", "c=b", "c=(other)"]),
    ),
    "addresses": ([f"u{i * 7919 % 1000}@mail.org" for i in range(N)], "identifier", []),
    "other days": (cycle("2024/01/31", "31.12.2024"), "date", 9),
    "times elsewhere": (cycle("2024-01-31T10:30:00+02:00", "2024-02-01"), "date", 9),
    "days first": (cycle("31/12/2024", "1/1/2025"), "date", 9),
    "nothing": (cycle(""), "empty", []),
    "one value": (cycle("same"), "constant", []),
    "one number": (cycle("4"), "constant", []),
    "days": (cycle("2024-01-31", "2024-02-01"), "date", 9),
    "times": (cycle("2024-01-31 10:30", "2024-02-01T23:59:59Z"), "date", 9),
    "German days": (cycle("31.12.2024", "1.1.2025"), "date", 9),
    "American days": (cycle("12/31/2024", "1/1/2025"), "date", 9),
    "text": (
        [f"it was a {word} day {i}" for i, word in enumerate(cycle("good", "bad"))],
        "text",
        4096,
    ),
}


def table(case):
    return pd.DataFrame({"x": NUMBERS[::-1], "c": CASES[case][0], "y": LABELS})


def as_csv(frame, folder):
    frame.to_csv(folder / "a.csv", index=False)
    return CsvSource([str(folder / "a.csv")], label="y")


def as_tsv(frame, folder):
    frame.to_csv(folder / "a.tsv", index=False, sep="\t", lineterminator="\r\n")
    return CsvSource([str(folder / "a.tsv")], label="y")


def as_gz(frame, folder):
    text = frame.to_csv(index=False, sep=";").encode()
    (folder / "a.csv.gz").write_bytes(gzip.compress(text))
    return CsvSource([str(folder / "a.csv.gz")], label="y")


def typed(frame):
    """Return whole numbers as such: as strings, they would be codes."""
    digits = [c for c in frame if frame[c].str.fullmatch(r"\s*\d+\s*").all()]
    return frame.astype(dict.fromkeys(digits, "int64"))


def as_parquet(frame, folder):
    typed(frame).to_parquet(folder / "a.parquet")
    return ArrowSource([str(folder / "a.parquet")], label="y")


def as_jsonl(frame, folder):
    typed(frame).to_json(folder / "a.jsonl", orient="records", lines=True)
    return JsonLinesSource([str(folder / "a.jsonl")], label="y")


def as_pandas(frame, folder):
    return FrameSource(typed(frame), label="y")


def as_arrow(frame, folder):
    import pyarrow as pa

    return FrameSource(pa.Table.from_pandas(typed(frame)), label="y")


def as_polars(frame, folder):
    polars = pytest.importorskip("polars")
    return FrameSource(polars.from_pandas(typed(frame)), label="y")


FORMS = [as_csv, as_tsv, as_gz, as_parquet, as_jsonl, as_pandas, as_arrow, as_polars]


def dense(source):
    parts = []
    for chunk in source.batches():
        assert not chunk.malformed
        parts.append(
            chunk.rows.toarray() if sparse.issparse(chunk.rows) else chunk.rows
        )
    return np.vstack(parts)


@pytest.mark.parametrize("case", CASES)
def test_the_same_from_every_form(case, tmp_path):
    _, role, features = CASES[case]
    expected = None
    for form in FORMS:
        if form is as_polars and not _has_polars():
            continue
        source = form(table(case), tmp_path)
        column = source.schema.roles[1]
        assert (column["name"], column["role"]) == ("c", role), form
        names = source.feature_names()[1:]
        if isinstance(features, int):
            assert len(names) == features
        else:
            assert names == features
        X = dense(source)
        expected = X if expected is None else expected
        np.testing.assert_array_equal(X, expected, err_msg=str(form))


def _has_polars():
    try:
        import polars  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("case", "row", "numbers"),
    [
        ("percent", 1, [0.035]),
        ("thousands", 0, [1234.5]),
        ("thousands", 1, [950]),
        ("commas", 2, [1234.5]),
        ("gaps", 1, [2.0, 1.0]),  # the median, and a mark
        ("gaps", 0, [1.5, 0.0]),
        ("dollars", 0, [1234.5]),
        ("dollars", 1, [-12]),
        ("euros", 1, [3.5]),
        ("euros", 2, [1234]),
        ("blanks within", 1, [12000.5]),
        ("large numbers", 1, [4e18 + 7919]),
        ("times elsewhere", 0, [19753 + 8.5 / 24, 0, 0, 1, 0, 0, 0, 0, 8.5]),
        ("yes or no", 0, [1]),
        ("yes or no", 2, [0]),
        ("words and gaps", 1, [0, 1, 0]),
        ("times", 1, [19754 + 86399 / 86400, 0, 0, 0, 1, 0, 0, 0, 86399 / 3600]),
        ("German days", 1, [20089, 0, 0, 1, 0, 0, 0, 0, 0]),
        ("American days", 0, [20088, 0, 1, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_what_a_cell_becomes(case, row, numbers, tmp_path):
    X = dense(as_csv(table(case), tmp_path))
    np.testing.assert_allclose(X[row, 1:], numbers, rtol=1e-12)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (cycle("1,000", "", "3,000", "5,000"), [3000.0, 1.0]),
        (cycle("10%", "", "30%", "50%"), [0.3, 1.0]),
        (cycle("2024-01-01", "", "2024-01-03", "2024-01-05"), [19725, *[0] * 8]),
    ],
)
def test_what_is_missing_is_the_median_in_any_notation(cells, expected, tmp_path):
    frame = pd.DataFrame({"c": cells, "x": NUMBERS, "y": LABELS})
    source = as_csv(frame, tmp_path)
    places = [k for k, name in enumerate(source.feature_names()) if name[0] == "c"]
    np.testing.assert_allclose(dense(source)[1, places], expected, rtol=1e-12)
    np.testing.assert_array_equal(dense(FrameSource(frame, label="y")), dense(source))


@pytest.mark.parametrize("cell", ["1.2o3", "-", "unknown", "12%", '"1,234.5"'])
@pytest.mark.parametrize("place", [0, 50, N - 1])
def test_one_cell_that_is_no_number_is_a_bad_line(cell, place, tmp_path):
    cells = [*NUMBERS]
    cells[place] = cell
    path = tmp_path / "a.csv"
    lines = [f"{c},{y}" for c, y in zip(cells, LABELS, strict=True)]
    path.write_text("c,y\n" + "\n".join(lines) + "\n")
    (bad,) = [
        b
        for chunk in CsvSource([str(path)], label="y").batches()
        for b in chunk.malformed
    ]
    assert (bad.line, bad.column) == (place + 2, "c")
    assert "as a number" in bad.problem
    assert "categorical=c makes categories" in bad.problem
    frame = pd.DataFrame({"c": [cell.strip('"') for cell in cells], "y": LABELS})
    (bad,) = [
        b for chunk in FrameSource(frame, label="y").batches() for b in chunk.malformed
    ]
    assert (bad.line, bad.column) == (place + 1, "c")


@pytest.mark.parametrize("form", FORMS[:-1])
def test_what_is_not_finite_is_a_bad_line(form, tmp_path):
    frame = pd.DataFrame({"x": NUMBERS, "c": ["1e999", "-inf", *NUMBERS[2:]]})
    source = form(frame.assign(y=LABELS), tmp_path)
    bad = [b for chunk in source.batches() for b in chunk.malformed]
    assert [b.column for b in bad] == ["c", "c"]
    assert all("not finite" in b.problem for b in bad)


def test_one_cell_that_is_no_date_is_a_bad_line(tmp_path):
    frame = table("days")
    frame.loc[40, "c"] = "2024-02-31"
    chunks = list(as_csv(frame, tmp_path).batches())
    (bad,) = chunks[0].malformed
    assert (bad.line, bad.column) == (42, "c")
    assert "cannot parse '2024-02-31' as a date" in bad.problem
    assert len(chunks[0].labels) == chunks[0].rows.shape[0] == N - 1


@pytest.mark.parametrize(
    ("cell", "seconds"),
    [
        ("9999-12-31 23:59:59-05:00", None),  # beyond what a datetime can hold
        ("0001-01-01 00:00:00+05:00", None),
        ("0000-01-01", None),
        ("12/31/99", "1999-12-31"),
        ("01/01/69", "1969-01-01"),
        ("12/31/68", "2068-12-31"),
        ("01/01/00", "2000-01-01"),
        ("07/04/1999", "1999-07-04"),
    ],
)
def test_dates_at_the_edges(cell, seconds, tmp_path):
    found = _READERS["mdy"](cell)
    if seconds is None:
        assert np.isnan(found)
        frame = table("days")
        frame.loc[40, "c"] = cell
        (chunk,) = as_csv(frame, tmp_path).batches()
        assert [line.line for line in chunk.malformed] == [42]
    else:
        assert found == pd.Timestamp(seconds).timestamp()


@pytest.mark.parametrize(
    "cell", ["word" + " " * 200_000 + "end", "1" * 200_000 + "x", " " * 200_000]
)
def test_long_cells_take_no_quadratic_time(cell):
    start = perf_counter()
    find_notation([cell])
    assert _NUMBER.fullmatch(cell) is None
    assert perf_counter() - start < 2.0


@pytest.mark.parametrize("form", FORMS[:-1])
def test_a_number_with_a_decimal_comma_that_is_too_large(form, tmp_path):
    frame = table("commas")
    frame.loc[40, "c"] = "1e400"
    (bad,) = [b for chunk in form(frame, tmp_path).batches() for b in chunk.malformed]
    assert (bad.column, bad.line % 40) in {("c", 1), ("c", 2)}
    assert "not finite, or too large for float64" in bad.problem


def test_blanks_within_quotes_do_not_count(tmp_path):
    cells = cycle(" x", "x ", "x", " y\t", "y", 'a "b" ', ' a "b"')
    frame = pd.DataFrame({"c": cells, "x": NUMBERS, "y": LABELS})
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL)
    text = CsvSource([str(path)], label="y")
    table = FrameSource(frame, label="y")
    assert text.feature_names() == table.feature_names()
    assert {"c=x", "c=y", 'c=a "b"'} <= {*text.feature_names()}
    np.testing.assert_array_equal(dense(text), dense(table))


def test_a_boolean_column_is_the_same_in_text(tmp_path):
    flags = np.resize([True, False, False], N)
    frame = pd.DataFrame({"c": flags, "x": NUMBERS, "y": LABELS})
    source = FrameSource(frame, label="y")
    X = dense(source)
    path = tmp_path / "a.csv"
    for words in (("True", "False"), ("true", "false"), ("1", "0")):
        text = frame.assign(c=np.where(flags, *words))
        text.to_csv(path, index=False)
        again = CsvSource([str(path)], label="y", recipe=source.recipe())
        np.testing.assert_array_equal(dense(again), X)
    text.loc[7, "c"] = "maybe"
    text.to_csv(path, index=False)
    (chunk,) = CsvSource([str(path)], label="y", recipe=source.recipe()).batches()
    assert [line.line for line in chunk.malformed] == [9]


def test_the_user_knows_better(tmp_path):
    path = tmp_path / "a.csv"
    frame = table("row numbers").assign(d=cycle("1", "2", "3"))
    frame.to_csv(path, index=False)

    def names(**wishes):
        return CsvSource([str(path)], label="y", **wishes).feature_names()

    assert names() == ["x", "d"]
    assert names(numeric=["c"]) == ["x", "c", "d"]
    assert names(only=["c"]) == ["c"]
    assert names(categorical=["d"])[1:] == ["d=1", "d=2", "d=3", "d=(other)"]
    assert names(drop=["d"]) == ["x"]
    with pytest.raises(ValueError, match="'d' cannot be categorical and numeric"):
        names(categorical=["d"], numeric=["d"])
    with pytest.raises(
        ValueError, match=r"no feature columns are left: .*'c' is identifier"
    ):
        names(drop=["x", "d"])


def test_many_values_have_hashed_columns_beside_the_frequent_ones(tmp_path):
    rng = np.random.default_rng(1)
    towns = [f"t{int(k) % 1500}" for k in rng.zipf(1.3, 4000)]
    frame = pd.DataFrame({"town": towns, "y": rng.random(4000) < 0.5})
    source = as_csv(frame, tmp_path)
    (column,) = source.schema.roles
    assert column["role"] == "category"
    assert len(column["values"]) == 80  # one for fifty rows
    assert column["tail"] >= 4 * (column["distinct"] - 80)
    X = dense(source)
    assert X.shape[1] == 80 + column["tail"]
    np.testing.assert_array_equal(np.abs(X).sum(axis=1), 1.0)
    first = source.feature_names().index("town=t1")
    np.testing.assert_array_equal(X[:, first] == 1.0, [town == "t1" for town in towns])


def test_other_data_are_read_by_the_same_schema(tmp_path):
    frame = table("words")
    recipe = json.loads(json.dumps(as_csv(frame, tmp_path).recipe()))
    other = frame.iloc[:3][["c", "x"]].assign(more=1, c=["pilot", "astronaut", ""])
    source = FrameSource(other, recipe=recipe)
    with pytest.warns(UserWarning, match="'c' in 1 row"):
        X = dense(source)
    np.testing.assert_array_equal(X[:, 1:], [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    with pytest.raises(ValueError, match="no column 'c'"):
        dense(FrameSource(frame[["x"]], recipe=recipe))


def test_a_model_takes_frames_and_says_what_columns_are(tmp_path):
    rng = np.random.default_rng(2)
    job = rng.choice(["nurse", "clerk", "pilot"], 600)
    age = rng.integers(18, 80, 600).astype(object)
    score = (job == "nurse") + np.array(age, float) / 40 + rng.normal(size=600)
    age[::20] = None
    frame = pd.DataFrame({"": range(600), "age": age, "job": job, "y": score > 2.0})
    frame.to_csv(tmp_path / "a.csv", index=False)
    model = tmp_path / "m.aucmax"
    command = (
        "train",
        tmp_path / "a.csv",
        "-o",
        model,
        "--label",
        "y",
        "--algorithm",
        "fast",
    )
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    for words in ("identifier", "left out", "5 %", "3 features, others pooled"):
        assert words in result.stdout
    told = json.loads(invoke("info", model, "--json").stdout)
    assert [column["role"] for column in told["columns"]] == [
        *("identifier", "number", "category")
    ]
    weights = {line["feature"]: line["weight"] for line in told["largest_weights"]}
    assert weights["job=nurse"] > 0.0 > weights["job=clerk"]
    assert "others pooled" in invoke("info", model).stdout
    scored = invoke("score", model, tmp_path / "a.csv").stdout.splitlines()
    scores = [float(line.rpartition(",")[2]) for line in scored[1:]]
    loaded = aucmax.load(model)
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(loaded.decision_function(frame), scores, rtol=1e-12)
    shuffled = frame[["y", "job", "age"]]
    np.testing.assert_allclose(loaded.decision_function(shuffled), scores, rtol=1e-12)
    assert loaded.predict(frame).shape == (600,)


def test_mixed_types_in_a_column_of_pandas(tmp_path):
    mixed = [1.5, "2", None, 3] * 30
    frame = pd.DataFrame({"c": mixed, "y": [0, 1, 0, 1] * 30}, dtype=object)
    source = FrameSource(frame, label="y")
    assert source.schema.roles[0]["role"] == "number"
    np.testing.assert_array_equal(dense(source)[:4, 0], [1.5, 2.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tails", []),
        ("tails", [-1]),
        ("tails", [1 << 40]),
        ("values", []),
        ("notation", {"when": "dym"}),
        ("flagged", ["job"]),
        ("spelt", ["when"]),
        ("roles", [{"name": "x"}]),
        ("fills", {"age": "old"}),
    ],
)
def test_a_recipe_that_does_not_go_together_is_refused(key, value):
    columns = {
        "age": cycle("1", "2", ""),
        "job": cycle("a", "b"),
        "when": cycle("2024-01-31", "2024-02-01"),
        "y": LABELS,
    }
    source = FrameSource(pd.DataFrame(columns), label="y")
    recipe = {"input": source.recipe(), "task": {}, "training": {}}
    recipe["task"] = Task.of(["yes"], ["no"]).to_json()
    check_recipe(recipe)
    recipe["input"] = {**recipe["input"], key: value}
    with pytest.raises(ValueError, match=f"its recipe has {key}"):
        check_recipe(recipe)
