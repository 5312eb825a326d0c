"""The CSV reader against plain Python, whatever the lines, however they are cut."""

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import os
import re
import warnings
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from aucmax.io.batch import START, Position
from aucmax.io.csv_source import CsvSource
from helpers.tables import MISSING, judged, records

HEAD = b"a,b,c,y\n"
CLEAN = b"1,2,red,0\n3,4.5,blue,1\n"
KINDS = {"a": "number", "b": "number", "c": "category", "y": "label"}

pytestmark = pytest.mark.filterwarnings("ignore::UnicodeWarning")  # bytes of all kinds


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def whole(source, start=START):
    """Return all chunks as one."""
    chunks = list(source.batches(start))
    assert all(chunk.rows.shape[1] == source.n_features for chunk in chunks)
    return SimpleNamespace(
        chunks=chunks,
        X=np.vstack(
            [np.empty((0, source.n_features)), *(dense(c.rows) for c in chunks)]
        ),
        y=np.concatenate([[], *(c.labels for c in chunks)])
        if chunks[0].labels is not None
        else None,
        bad=[line for c in chunks for line in c.malformed],
        line=[int(line) for c in chunks for line in c.line_numbers],
        extra={
            name: [v for c in chunks for v in c.extra[name]] for name in chunks[0].extra
        },
    )


def read(path, **options):
    return whole(CsvSource([path], **{"hash_size": 8, **options}))


def recipe_of(write, **options):
    """Return how to read tables of the columns ``KINDS``."""
    path = write(HEAD + CLEAN, "clean.csv")
    options = {"label": "y", "hash_size": 64, **options}
    return json.loads(json.dumps(CsvSource([path], **options).recipe()))


def same(source, text, missing="error", kinds=KINDS):
    """Assert that a file with these rows, after a header, is read as by Python."""
    expected = list(judged(records(HEAD + text), kinds, missing))[1:]
    rows = [row for row in expected if row.fields is not None]
    bad = [row for row in expected if row.fields is None]
    found = [chunk for chunk in source.batches()]
    lines = [line for chunk in found for line in chunk.malformed]
    assert [(b.line, b.column, b.text) for b in lines] == [
        (row.line, row.column, row.text) for row in bad
    ]
    assert [int(i) for chunk in found for i in chunk.line_numbers] == [
        row.line for row in rows
    ]
    numbers = [v for chunk in found for v in dense(chunk.rows)[:, :2].ravel().tolist()]
    assert numbers == [value for row in rows for value in row.fields[:2]]
    values = [v for chunk in found for v in chunk.extra["c"]]
    assert values == [row.fields[2].decode("utf-8", "backslashreplace") for row in rows]
    hashed = [
        v for chunk in found for v in np.abs(dense(chunk.rows)[:, 2:]).sum(axis=1)
    ]
    assert hashed == [row.fields[2] not in MISSING for row in rows]
    assert [v for chunk in found for v in chunk.labels] == [
        row.fields[3] for row in rows
    ]
    texts = [
        chunk.text.data[start:stop]
        for chunk in found
        for start, stop in zip(chunk.text.starts, chunk.text.stops, strict=True)
    ]
    assert texts == [row.text for row in rows]
    return rows, bad


fields = st.text(st.sampled_from('ab1", ;\n'), max_size=4)


@given(st.lists(st.lists(fields, min_size=1, max_size=3), max_size=6), st.booleans())
def test_the_reference_is_the_csv_module(table, crlf):
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\r\n" if crlf else "\n").writerows(table)
    text = file.getvalue().encode()
    expected = [[field for field in row] for row in table]
    found = list(records(text))
    # Blanks count for the module, unless in quotes.
    assert [[f.decode().strip(" ") for f in row.fields] for row in found] == [
        [field.strip(" ") for field in row] for row in expected
    ]


@given(st.text(st.sampled_from('a1",\n'), max_size=30))
def test_the_reference_refuses_what_the_csv_module_refuses(text):
    lines = text.encode().split(b"\n")
    lines = [line + b"\n" for line in (lines if lines[-1] else lines[:-1])]
    at, expected = 0, []
    while at < len(lines):
        reader = csv.reader(map(bytes.decode, lines[at:]), strict=True)
        try:
            row = next(reader)
            if row:
                expected.append((at + 1, [field.encode() for field in row]))
            at += reader.line_num
        except csv.Error:
            expected.append((at + 1, None))
            at += 1
    assert [(row.line, row.fields) for row in records(text.encode())] == expected


cells = st.one_of(
    st.sampled_from(["1", "-2.5", "+.5e3", " 7", "1e400", "inf", "nan", "", "NA", "?"]),
    st.sampled_from(["x", "0x1", "1_0", '"4"', '"', '""', '"a""b"', '"a\nb"', '"a,b"']),
    st.sampled_from(["é", "\t", "1\r", "-", "123" * 9]),
)
lines = st.lists(cells, min_size=1, max_size=5).map(",".join)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.one_of(st.just("1,2,x,0"), lines), max_size=24),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["error", "zero"]),
    st.sampled_from([8, 64, 1 << 20]),
)
def test_any_lines(tmp_path_factory, table, end, last, missing, block):
    folder = tmp_path_factory.mktemp("lines")

    def write(content, name="data.csv"):
        (folder / name).write_bytes(content)
        return str(folder / name)

    text = end.join(table).encode() + (end.encode() if last else b"")
    recipe = recipe_of(write, missing=missing)
    source = CsvSource([write(HEAD + text)], recipe=recipe, extra=["c"], keep_text=True)
    source._block = block
    same(source, text, missing)


SIGNS = np.frombuffer(b'0159.e+-,,,"\n\r ;aNA?\xc3\x00\t', np.uint8)


def mutated(rng, n):
    """Return lines of CSV with some bytes changed, put in or taken out."""
    numbers = rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-9, 9, (n, 2))
    words = np.array(["red", "blue", '"a, b"', '"say ""x"""', '"two\nlines"', "NA"])
    text = "".join(
        f"{a!r},{b:.3g},{word},{y}\n"
        for (a, b), word, y in zip(
            numbers.tolist(),
            rng.choice(words, n).tolist(),
            rng.integers(0, 2, n).tolist(),
            strict=True,
        )
    )
    data = np.frombuffer(text.encode(), np.uint8).copy()
    change = rng.random(data.size)
    data[change < 0.004] = rng.choice(SIGNS, np.count_nonzero(change < 0.004))
    data = np.delete(data, np.flatnonzero(change > 0.998))
    places = np.sort(rng.integers(0, data.size, n // 20))
    return np.insert(data, places, rng.choice(SIGNS, places.size)).tobytes()


@pytest.mark.parametrize("missing", ["error", "zero"])
def test_mutated_lines(write, missing):
    rng = np.random.default_rng(len(missing))  # other lines for each
    recipe = recipe_of(write, missing=missing)
    n_bad = n_good = 0
    for i in range(5):
        text = mutated(rng, 10_000)
        path = write(HEAD + text, f"{i}.csv")
        source = CsvSource([path], recipe=recipe, extra=["c"], keep_text=True)
        source._block = [1 << 22, 1 << 16, 5000, 1 << 18, 1 << 20][i]
        good, bad = same(source, text, missing)
        n_good += len(good)
        n_bad += len(bad)
    assert n_good > 20_000
    assert n_bad > 5000


def test_fields_at_every_place(write):
    """Numbers and words of all lengths, wherever the bytes looked at begin and end."""
    rng = np.random.default_rng(0)
    digits = rng.integers(48, 58, 4000).astype(np.uint8).tobytes()
    lines = []
    for size in [*range(1, 25), *range(52, 70)]:
        for before in (1, 7, 8, 9, 16, 17):
            at = rng.integers(0, 3000)
            whole, after = digits[at:][:before], digits[at + 99 :][:size]
            word = (b"x y" * 30)[:size]
            for number in (whole, b"-" + whole + b"." + after, b" " + whole + b"\t"):
                for field in (word, b'"' + word + b'"', b'"' + word[:-1] + b'\n"'):
                    lines.append(b"%b,%b,%b,1" % (number, after[:15], field))
            lines.append(b'%b,%b,"%b""",0\r' % (whole, whole, word))
            lines.append(b'%b,%b,"%b"\t,0' % (whole, whole, word))
    text = b"\n".join(lines)
    recipe = recipe_of(write, missing="error")
    for block in (1 << 22, 1 << 10):
        path = write(HEAD + text)
        source = CsvSource([path], recipe=recipe, extra=["c"], keep_text=True)
        source._block = block
        good, bad = same(source, text, "error")
        assert len(good) > 9 * len(bad) > 0


def equal(batch, other):
    for name, value in batch._asdict().items():
        second = getattr(other, name)
        if name == "rows":
            np.testing.assert_array_equal(dense(value), dense(second))
        elif name in ("labels", "weights", "line_numbers"):
            np.testing.assert_array_equal(value, second)
        elif name == "text":
            texts = [
                [
                    lines.data[a:b]
                    for a, b in zip(lines.starts, lines.stops, strict=True)
                ]
                for lines in (value, second)
            ]
            assert texts[0] == texts[1]
        elif name == "extra":
            for key in value:
                np.testing.assert_array_equal(value[key], second[key])
        else:
            assert value == second, name


@pytest.mark.parametrize("packed", [None, gzip, bz2, lzma])
def test_reading_goes_on_anywhere(write, packed):
    rng = np.random.default_rng(1)
    ending = {None: "", gzip: ".gz", bz2: ".bz2", lzma: ".xz"}[packed]
    files = []
    for i in range(3):
        text = HEAD + b"\n" + CLEAN + mutated(rng, 150)
        content = packed.compress(text) if packed else text
        files.append(write(content, f"{i}.csv{ending}"))
    recipe = recipe_of(write)

    def source():
        made = CsvSource(files, recipe=recipe, keep_text=True, extra=["c"])
        made._block = 1 << 10
        return made

    chunks = list(source().batches())
    assert len(chunks) > 12
    assert {chunk.end.file for chunk in chunks} == {0, 1, 2}
    assert sum(b"\n" in chunk.text.data for chunk in chunks) == len(chunks)
    for i, chunk in enumerate(chunks):
        if i % (1 if packed is None else 5) == 0:
            position = Position(*json.loads(json.dumps(chunk.end)))
            rest = list(source().batches(position))
            assert len(rest) == len(chunks) - i - 1
            for one, other in zip(chunks[i + 1 :], rest, strict=True):
                if packed is None:
                    equal(one, other)
                else:
                    equal(one._replace(done=0), other._replace(done=0))
    assert chunks[-1].done == source().size


def test_blocks_that_end_in_quotes(write):
    texts = ["line\n" * (i % 7) for i in range(500)]
    rows = [f'{i},"{text}, ""{i}""",{i % 2}\n' for i, text in enumerate(texts)]
    path = write("n,words,y\n" + "".join(rows))
    for block in (16, 100, 1000, 1 << 20):
        options = {"categorical": ["words"], "extra": ["words"], "hash_size": 4}
        source = CsvSource([path], label="y", **options)
        source._block = block
        found = whole(source)
        assert not found.bad
        assert found.extra["words"] == [f'{t}, "{i}"' for i, t in enumerate(texts)]
        assert found.line == np.cumsum([2, *(1 + i % 7 for i in range(499))]).tolist()
        if block == 1000:
            assert len(found.chunks) > 10


def test_a_quote_too_many_costs_a_line(write):
    rows = ["1,x,0\n"] * 3000
    rows[10] = '1,"x,0\n'
    path = write("a,b,y\n" + "".join(rows))
    source = CsvSource([path], label="y", hash_size=4)
    source._block, source._longest_quoted = 1 << 10, 1 << 8
    found = whole(source)
    assert [line.line for line in found.bad] == [12]
    assert "quote" in found.bad[0].problem
    assert len(found.X) == 2999
    assert max(len(chunk.labels) for chunk in found.chunks) < 400


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("a,b\n1,2\n", True),
        ("1,2\n3,4\n", False),
        ("a,b\n1,x\n2,y\n", True),
        ("1,x\n2,y\n", False),  # all lines are such
        ("x,y\nx,z\n", False),
        ("colour,y\nred,0\nblue,1\n", True),
        ("colour,shape\nred,round\nblue,flat\n", True),
        ("e,e,p\nx,y,p\n", False),  # no two columns are called the same
        ("id,2019,2020\n1,2,3\n", True),
        ("a,b\n", True),
        (",x\n0,1\n1,2\n", True),
        ("NA,1\n2,3\n", False),
        ("a,b\n,\n", True),
        ("nan,inf\n1,2\n", False),
    ],
)
def test_is_there_a_header(write, text, header):
    source = CsvSource([write(text)])
    assert source.recipe()["header"] is header
    names = text.partition("\n")[0].split(",")
    assert source.recipe()["columns"] == (
        [name or "0" for name in names]
        if header
        else [str(i) for i in range(len(names))]
    )
    assert source.header() == (text.partition("\n")[0].encode() if header else None)
    for said in (True, False) if len(set(names)) == len(names) else (False,):
        assert CsvSource([write(text)], header=said).recipe()["header"] is said


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("kind,spam\nx,ham\ny,spam\n", {"label": "spam"}),
        ("kind,y\nkind,no\nother,yes\n", {"label": "y"}),
        ("1,y,z\n2,u,v\n3,u,v\n", {"label": "y"}),
        ("kind,w,y\nkind,w,a\nx,y,b\n", {"label": "2", "drop": ["w"]}),
    ],
)
def test_a_column_that_is_named_says_that_there_is_a_header(write, text, options):
    names = text.partition("\n")[0].split(",")
    assert not CsvSource([write(text)]).recipe()["header"]
    assert CsvSource([write(text)], **options).recipe()["columns"] == names


def test_a_position_says_nothing_about_a_header(write):
    source = CsvSource([write("5,0,1\n6,2,0\n")], label="0")
    assert source.recipe()["header"] is False
    assert source.recipe()["label"] == "0"
    assert CsvSource([write("5,-1\n6,1\n")], label="-1").recipe()["label"] == "1"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("label", ["y", None])
def test_a_header_in_the_middle_is_a_bad_line(write, end, label):
    lines = ["a,c,y", "1,red,0", "a,c,y", "a,c,y", "2,blue,1", "a,c,y"]
    source = CsvSource([write(end.join(lines))], label=label, hash_size=8)
    recipe = source.recipe()
    assert recipe["header"] is True
    assert recipe["numbers"] == (["a"] if label else ["a", "y"])
    found = whole(source)
    assert [line.line for line in found.bad] == [3, 4, 6]
    assert "is the header there again? Leave out" in str(found.bad[0])
    np.testing.assert_array_equal(found.X[:, 0], [1, 2])


@pytest.mark.parametrize(
    ("text", "wanted", "message"),
    [
        ("a,Clicked\n1,2\n", "clicked", "(did you mean 'Clicked'?); there are 'a', 'C"),
        ("a,clicked\n1,2\n", "clikced", "(did you mean 'clicked'?); there are 'a', 'c"),
        ("a,clicked\n1,2\n", "zebra", "'zebra'; there are 'a', 'clicked'"),
        ("1,2\n3,4\n", "y", "no names (1,2), so columns are called by position, 0 to"),
    ],
)  # fmt: skip
def test_a_wrong_name_of_a_column(write, text, wanted, message):
    for option in ({"label": wanted}, {"drop": [wanted]}, {"weight": wanted}):
        with pytest.raises(ValueError, match=re.escape(message)):
            CsvSource([write(text)], **option).recipe()


def test_a_column_that_a_model_misses(write):
    recipe = recipe_of(write)
    path = write("A,b,c\n1,2,red\n")
    wanted = r"no column 'a' \(did you mean 'A'\?\), .* it has 'A', 'b', 'c'"
    with pytest.raises(ValueError, match=wanted):
        list(CsvSource([path], recipe=recipe).batches())


@pytest.mark.parametrize(
    ("text", "name", "delimiter"),
    [
        ("a,b\n1,2\n", "x.csv", ","),
        ("a;b\n1,5;2\n", "x.csv", ";"),
        ("a\tb,c\td\n", "x.txt", "\t"),
        ("a b\tc\n", "x.tsv", "\t"),
        ("a|b|c\n", "x", "|"),
        ("one\n1\n", "x.csv", ","),
        ('"a;b;c;d",e\n1,2\n', "x.csv", ","),
        ("x,y\n", "x.tsv", "\t"),
    ],
)
def test_which_delimiter(write, text, name, delimiter):
    source = CsvSource([write(text, name)])
    assert source.delimiter == delimiter


def test_a_delimiter_of_ones_own(write):
    path = write("a:b:y\n1:2:0\n")
    source = CsvSource([path], delimiter=":", label="y")
    np.testing.assert_array_equal(whole(source).X, [[1, 2]])
    again = CsvSource([path], recipe=source.recipe())
    np.testing.assert_array_equal(whole(again).X, [[1, 2]])
    found = read(write("a b\tc\n1\t2\n"), delimiter="tab", label="c")
    np.testing.assert_array_equal(found.X, [[1]])
    for wrong in ("", "ab", "1", '"', "\n", "é"):
        with pytest.raises(ValueError, match="delimiter"):
            CsvSource([path], delimiter=wrong)


@pytest.mark.parametrize("label", ["y", "-1", -1, "3", 3])
def test_the_label_by_name_or_position(write, label):
    found = read(write(HEAD + CLEAN), label=label)
    np.testing.assert_array_equal(found.y, [0.0, 1.0])
    assert found.y.dtype == np.float64


def test_a_name_comes_before_a_position(write):
    found = read(write("1,0\n5,6\n"), label="0", header=True)
    np.testing.assert_array_equal(found.y, [6.0])


def test_labels_that_are_no_numbers(write):
    found = read(write("x,y\n1,ham\n2,spam\n3,\n4,None\n"), label="y")
    assert found.y.tolist() == ["ham", "spam", "None"]
    assert (found.line, found.bad) == ([2, 3, 5], [])
    assert found.chunks[0].unlabelled == 1
    found = read(write("x,y\n1,0\n2,1\n3,NA\n4,x\n"), label="y")
    assert found.y.tolist() == ["0", "1", "x"]
    assert (found.line, found.bad) == ([2, 3, 5], [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "yy"}, "no label column 'yy'.*did you mean 'y'"),
        ({"label": "7"}, "there are 4 columns"),
        ({"drop": ["z"]}, "no column to drop 'z'"),
        ({"weight": "w"}, "no weight column 'w'"),
        ({"only": ["a", "y"], "label": "y"}, "label"),
        ({"text": ["c"], "categorical": ["c"]}, "categorical and text"),
        ({"only": []}, "no feature columns are left"),
        ({"label": "y", "weight": "y"}, "label and weight"),
        ({"encode": "two-hot"}, "encode"),
        ({"missing": "guess"}, "missing"),
        ({"hash_size": 0}, "hash_size"),
        ({"hash_size": "9"}, "hash_size"),
        ({"header": "no"}, "header must be true or false"),
        ({"dtype": int}, "dtype"),
    ],
)
def test_wishes_that_cannot_be(write, options, message):
    with pytest.raises(ValueError, match=message):
        read(write(HEAD + CLEAN), **options)


def test_which_columns(write):
    path = write("a,b,c,d,w,y\n1,2,x,4,0.5,0\n5,6,7,8,2,1\n")

    def names(**options):
        source = CsvSource([path], label="y", weight="w", encode="onehot", **options)
        return source.feature_names()

    assert names() == ["a", "b", "d", "c=7", "c=x"]
    assert names(drop=["c", "0"]) == ["b", "d"]
    assert names(only=["d", "a"]) == ["a", "d"]
    assert names(categorical=["a"], drop=["c"]) == ["b", "d", "a=1", "a=5"]
    chunk = next(CsvSource([path], label="y", weight="w", drop=["c"]).batches())
    np.testing.assert_array_equal(chunk.weights, [0.5, 2.0])
    np.testing.assert_array_equal(chunk.rows, [[1, 2, 4], [5, 6, 8]])
    options = {"label": "y", "weight": "w"}
    hashed = CsvSource([path], encode="hash", hash_size=3, **options).feature_names()
    assert hashed == ["a", "b", "d", "hash_0", "hash_1", "hash_2"]
    named = CsvSource([path], **options).feature_names()
    assert named == ["a", "b", "d", "c=7", "c=x", "c=(other)"]


def test_weights_that_are_none(write):
    text = "x,w\n1,1\n2,-1\n3,\n4,inf\n5,x\n6,0\n"
    source = CsvSource([write(text)], weight="w", header=True)
    found = whole(source)
    np.testing.assert_array_equal(found.X, [[1], [6]])
    assert [(line.line, line.column) for line in found.bad] == [
        (i, "w") for i in (3, 4, 5, 6)
    ]
    assert "negative" in found.bad[0].problem


def test_missing_values(write):
    text = "a,b,c,y\n1,2,u,0\n,4,v,1\nNA,?,u,0\n3,null,None,1\nnan,N/A,NaN,0\n"
    path = write(text)
    options = {"label": "y", "encode": "onehot"}
    found = read(path, missing="error", **options)
    np.testing.assert_array_equal(found.X, [[1, 2, 1]])
    assert [(b.line, b.column) for b in found.bad] == [
        (3, "a"),
        (4, "a"),
        (5, "b"),
        (6, "a"),
    ]
    for line in found.bad:
        assert "missing=impute" in line.problem
        assert "zero" in line.problem
    other = write("c,y\nu,0\n,1\n", "other.csv")
    (line,) = read(other, label="y", missing="error").bad
    assert line.problem.endswith("missing=zero ignores the missing value")
    assert str(found.bad[1]) == (
        f"{path}, line 4, column a: the value is missing: missing=zero "
        "replaces it by zero, and in training missing=impute by the mean of the "
        "column"
    )
    found = read(path, missing="zero", **options)
    categories = [[1, 0], [0, 1], [1, 0], [0, 0], [0, 0]]
    numbers = [[1, 2], [0, 4], [0, 0], [3, 0], [0, 0]]
    np.testing.assert_array_equal(found.X, np.hstack([numbers, categories]))
    found = read(path, missing="impute", **options)
    numbers = [[1, 2], [2, 4], [2, 3], [3, 3], [2, 3]]
    np.testing.assert_array_equal(found.X, np.hstack([numbers, categories]))
    assert not found.bad


def test_means_are_of_good_rows_in_all_files(write):
    rng = np.random.default_rng(2)
    x = rng.normal(size=300) + 1e6
    rows = [f"{value!r},{i % 2}\n" for i, value in enumerate(x.tolist())]
    rows[7], rows[100] = ",0\n", "NA,1\n"
    rows.insert(50, "5,6,7\n")  # does not count
    first = write("x,y\n" + "".join(rows[:150]), "1.csv")
    second = write("x,y\n" + "".join(rows[150:]), "2.csv")
    source = CsvSource([first, second], label="y", missing="impute")
    source._block = 256
    mean = math.fsum(np.delete(x, [7, 100])) / 298
    assert source.recipe()["means"] == [pytest.approx(mean, rel=1e-14)]
    found = whole(source)
    assert found.X[7, 0] == found.X[100, 0] == source.recipe()["means"][0]
    assert len(found.X) == 300
    assert CsvSource([first], label="y", missing="impute", dtype=np.float32).recipe()[
        "means"
    ] == [pytest.approx(np.delete(x[:149], [7, 100]).mean(), rel=1e-14)]


def test_a_word_in_a_column_of_numbers(write):
    path = write("x,size,y\n" + "1,2,0\n" * 300 + "1,large,0\n" + "1,2,1\n" * 30)
    source = CsvSource([path], label="y")
    source._block = 1 << 10
    (line,) = whole(source).bad
    assert line.line == 302
    assert line.column == "size"
    assert line.text == b"1,large,0"
    assert "cannot parse 'large' as a number" in line.problem
    assert "categorical=size" in line.problem
    found = read(path, label="y", numeric=["x"], categorical=["size"])
    assert not found.bad
    assert found.X.shape == (331, 1 + 3)  # two values, and one for all others


def test_wrong_number_of_fields(write):
    found = read(write(HEAD + CLEAN + b"1,2\n1,2,x,0,5\n,,\n"), label="y")
    assert [(b.line, b.column) for b in found.bad] == [(4, None), (5, None), (6, None)]
    assert "2 fields, but 4 are expected" in found.bad[0].problem


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats(write, dtype):
    tokens = ["0.1", "-0.0", "1e-320", "123456789.123456789", "9007199254740993"]
    # Half-way cases with more digits than the fast methods take.
    tokens += [
        "9007199254740993" + "0" * 20,
        "9007199254740993.00000000000000000000001",
    ]
    tokens += ["1.00000000000000011102230246251565404236316680908203125"]
    tokens += ["1.00000000000000011102230246251565404236316680908203124"]
    bad = ["1e400", "-inf", "1" + "0" * 400]
    # The last one, half-way between doubles, is for Python to read.
    large = ["1e39", "-1e300", str((1 << 53 | 1) << 80)]
    bad += large if dtype == np.float32 else []
    found = read(
        write("x,y\n" + "".join(f"{token},1\n" for token in tokens + bad)),
        label="y",
        dtype=dtype,
    )
    (chunk,) = found.chunks
    assert chunk.rows.dtype == dtype
    expected = np.array([float(token) for token in tokens]).astype(dtype)
    assert chunk.rows[:, 0].tobytes() == expected.tobytes()
    assert [line.line for line in found.bad] == [
        len(tokens) + 2 + i for i in range(len(bad))
    ]
    assert "not finite" in found.bad[0].problem


def test_numbers_that_only_python_can_read(write):
    token = "1.00000000000000011102230246251565404236316680908203125"
    large = "1.7976931348623158079372897140530341507993413271003782693617377899"
    rows = [
        f"{token},{token},1,1\n",
        f"1,{large}e308,1,1\n",
        f"1,2,-{token},1\n",
    ] * 2500
    path = write("a,b,w,y\n" + "".join(rows))
    found = read(path, label="y", weight="w", numeric=["a"])
    np.testing.assert_array_equal(found.X, [[1.0, 1.0]] * 2500)
    assert [line.line for line in found.bad] == [i + 2 for i in range(7500) if i % 3]


def test_byte_order_mark(write):
    found = read(write(b"\xef\xbb\xbf" + HEAD + CLEAN), label="y", only=["a"])
    np.testing.assert_array_equal(found.X, [[1], [3]])
    found = read(write(b"\xef\xbb\xbf1,2\n3,4\n"), label="0")
    np.testing.assert_array_equal(found.y, [1, 3])
    with pytest.raises(ValueError, match="UTF-16"):
        read(write("a,b\n1,2\n".encode("utf-16")))


def test_no_rows(write):
    with pytest.raises(ValueError, match="the file is empty"):
        CsvSource([write(b"")]).recipe()
    empty = write(b"\n\r\n", "empty.csv")
    source = CsvSource([empty, write(HEAD + CLEAN)], label="y", hash_size=8)
    assert len(whole(source).X) == 2
    assert list(CsvSource([write(HEAD)], label="y").batches()) == []
    with pytest.raises(ValueError, match="duplicate column name 'a'"):
        CsvSource([write("a,a\n1,2\n")]).recipe()
    with pytest.raises(ValueError, match="quoting in the first line"):
        CsvSource([write('a,"b\n1,2\n')]).recipe()
    with pytest.raises(FileNotFoundError):
        CsvSource(["nowhere.csv"]).recipe()


@pytest.mark.parametrize("encode", ["hash", "onehot"])
def test_a_recipe_reads_other_files_alike(write, encode):
    path = write("a,b,c,t,w,y\n1,2,u,one two,1,0\n3,,v,three,2,1\n")
    source = CsvSource(
        [path],
        label="y",
        weight="w",
        text=["t"],
        encode=encode,
        hash_size=32,
        missing="impute",
        dtype=np.float32,
    )
    recipe = json.loads(json.dumps(source.recipe()))
    assert recipe["format"] == "csv"
    expected = whole(source)
    other = write("y;t;z;c;b;a\n0;one two;9;u;2;1\n1;three;9;v;;3\n", "other.csv")
    again = CsvSource([other], recipe=recipe)
    found = whole(again)
    np.testing.assert_array_equal(found.X, expected.X)
    np.testing.assert_array_equal(found.y, expected.y)
    assert found.chunks[0].rows.dtype == np.float32
    assert found.chunks[0].weights is None
    assert again.recipe() == recipe
    assert again.feature_names() == source.feature_names()
    # A value that training has not seen, and no label.
    other = write("t,c,b,a\none,new,2,1\n", "new.csv")
    found = whole(CsvSource([other], recipe=recipe))
    assert found.y is None
    assert np.count_nonzero(found.X) == (3 if encode == "onehot" else 4)
    other = write("t,b,z,y\none,2,3,1\n", "poor.csv")
    with pytest.raises(ValueError, match=r"poor.csv has no column 'a', 'c'"):
        whole(CsvSource([other], recipe=recipe))
    other = write("a,b,c,t,target\n1,2,u,one,good\n", "named.csv")
    assert whole(CsvSource([other], recipe=recipe, label="target")).y == ["good"]


def test_a_recipe_without_names(write):
    recipe = CsvSource([write("0,1,2\n1,3,4\n")], label="0").recipe()
    found = whole(CsvSource([write("1,5,6\n", "with.csv")], recipe=recipe))
    np.testing.assert_array_equal(found.X, [[5, 6]])
    np.testing.assert_array_equal(found.y, [1])
    found = whole(CsvSource([write("5,6\n", "without.csv")], recipe=recipe))
    np.testing.assert_array_equal(found.X, [[5, 6]])
    assert found.y is None
    with pytest.raises(ValueError, match="no column '1', '2'"):
        whole(CsvSource([write("5\n", "poor.csv")], recipe=recipe))


def test_standard_input(write, monkeypatch):
    text = HEAD + CLEAN * 200

    def pipe():
        stdin = SimpleNamespace(buffer=io.BytesIO(text))
        monkeypatch.setattr("sys.stdin", stdin)
        source = CsvSource(["-"], label="y", encode="hash", hash_size=8)
        source._block = 512
        return source

    source = pipe()
    assert source.size is None
    assert source.n_features == 10
    expected = whole(CsvSource([write(text)], label="y", encode="hash", hash_size=8))
    found = whole(source)
    np.testing.assert_array_equal(found.X, expected.X)
    with pytest.raises(ValueError, match="only once"):
        list(source.batches())
    third = found.chunks[2].end
    np.testing.assert_array_equal(
        whole(pipe(), third).X, np.vstack([dense(c.rows) for c in found.chunks[3:]])
    )
    for options in ({"missing": "impute"}, {"encode": "onehot"}):
        pipe()
        with pytest.raises(ValueError, match="a pipe can be read only once"):
            CsvSource(["-"], label="y", **options).recipe()


def test_a_named_pipe(tmp_path):
    text = HEAD + CLEAN * 2000
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_bytes, args=(text,))
    writer.start()
    source = CsvSource([str(path)], label="y", only=["a", "b"])
    source._block = 4096
    np.testing.assert_array_equal(whole(source).X, [[1, 2], [3, 4.5]] * 2000)
    writer.join()
    assert source.size is None
    with pytest.raises(ValueError, match="only once"):
        list(source.batches())


def test_without_labels(write):
    recipe = recipe_of(write)
    path = write("y,c,b,a\n,x,1,2\nwhat,x,3,4\n", "unlabelled.csv")
    source = CsvSource([path], recipe=recipe, labelled=False)
    (chunk,) = source.batches()
    assert chunk.labels is None
    assert not chunk.malformed
    np.testing.assert_array_equal(dense(chunk.rows)[:, :2], [[2, 1], [4, 3]])
    assert source.recipe() == recipe
    found = whole(CsvSource([path], recipe=recipe))
    assert [line.line for line in found.bad] == [3]
    assert [chunk.unlabelled for chunk in found.chunks] == [1]


def test_a_folder_of_parts(tmp_path, write):
    for i in range(3):
        write(
            f"b,a,y\n{i},{i + 10},1\n" if i % 2 else f"a,b,y\n{i + 10},{i},1\n",
            f"{i}.csv",
        )
    found = read(str(tmp_path), label="y")
    np.testing.assert_array_equal(found.X, [[10, 0], [11, 1], [12, 2]])
    found = read(str(tmp_path / "[01].csv"), label="y")
    np.testing.assert_array_equal(found.X, [[10, 0], [11, 1]])


def test_extra_columns_as_they_are(write):
    path = write("a,b,c,y\n1,2,NA,0\n 3 ,,x,1\n")
    source = CsvSource([path], label="y", missing="zero", extra=["a", "b", "c", "3"])
    assert whole(source).extra == {
        "a": ["1", "3"],
        "b": ["2", ""],
        "c": ["NA", "x"],
        "3": ["0", "1"],
    }


def test_a_line_longer_than_a_block(write):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 1000, (5, 300))
    text = "\n".join(",".join(map(str, row)) for row in X.tolist())
    source = CsvSource([write(text)], label="-1")
    source._block = 64
    found = whole(source)
    np.testing.assert_array_equal(found.X, X[:, :-1])
    np.testing.assert_array_equal(found.y, X[:, -1])


def test_many_bad_lines_make_many_chunks(write):
    path = write(HEAD + CLEAN + b"?\n" * 40_000 + CLEAN)
    found = read(path, label="y")
    assert len(found.X) == 4
    assert [line.line for line in found.bad] == list(range(4, 40_004))


def test_empty_lines_take_no_memory(write):
    names = ",".join(f"x{i}" for i in range(5000))
    row = ",".join(["1"] * 5000)
    source = CsvSource([write(names + "\n" * 3_000_000 + row)])
    (chunk,) = source.batches()  # a matrix with a row a line would have 120 GB
    assert chunk.rows.shape == (1, 5000)
    assert chunk.line_numbers.tolist() == [3_000_001]


def test_decimal_commas(write):
    path = write("id;a;y\n1;0,53;1\n2;-1,5;0\n3;;1\n")
    found = read(path, label="y", missing="zero")
    np.testing.assert_array_equal(found.X, [[1, 0.53], [2, -1.5], [3, 0]])
    chosen = read(path, label="y", missing="zero", categorical=["a"])
    assert len(chosen.y) == 3
    dropped = read(path, label="y", drop=["1"])
    assert dropped.X.shape == (3, 1)
    # Categories that have commas in them are what they are.
    words = write("a;y\n1,2;1\n1,2b;0\n")
    assert len(read(words, label="y").y) == 2


def test_lines_of_a_pipe_as_they_come(monkeypatch, tmp_path):
    """Whatever the pieces, and with line ends in quotes, the rows are the same."""
    monkeypatch.setattr("aucmax.io.compression._SOON", 0.0)
    rows = [f'{i},"a\nb{i % 3}",{i % 2}' for i in range(50)]
    content = ("x,c,y\n" + "\n".join(rows)).encode()
    (tmp_path / "whole.csv").write_bytes(content)
    options = {"label": "y", "numeric": ["x"]}
    recipe = CsvSource([str(tmp_path / "whole.csv")], **options).recipe()

    class Pieces(io.BytesIO):
        def readinto(self, view):
            return super().readinto(view[:step])

    for step in (1, 7, 1000):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Pieces(content)))
        chunks = list(CsvSource(["-"], recipe=recipe, prompt=True).batches())
        assert (
            np.concatenate([chunk.labels for chunk in chunks]).tolist() == [0, 1] * 25
        )
        first = np.concatenate([chunk.rows[:, [0]].toarray()[:, 0] for chunk in chunks])
        assert first.tolist() == list(range(50))
        assert len(chunks) > 20 or step == 1000
        assert not any(chunk.malformed for chunk in chunks)


@pytest.mark.parametrize(
    ("values", "dates"),
    [
        (["2024-01-31", "2023-12-01"], True),
        (["2024-01-31T10:00:00Z", "2024-01-31 10:00", ""], True),
        (["31.12.2024", "1.1.2025"], True),
        (["12/31/2024 23:59:59.5", "1/1/2025"], True),
        (["2024-01-31", "never"], False),
        (["2024-01/31", "2024-01/30"], False),
        (["555-12-2024", "555-12-2023"], False),
        (["a", "b"], False),
    ],
)
def test_dates_are_no_categories_unless_the_user_says_so(tmp_path, values, dates):
    path = tmp_path / "a.csv"
    path.write_text("x,day,y\n" + "".join(f"1,{value},0\n" for value in values))
    reader = {"label": "y", "missing": "zero"}
    schema = CsvSource([str(path)], **reader).schema
    assert (schema.dates, schema.categories)[not dates] == ["day"]
    assert (schema.dates, schema.categories)[dates] == []
    for wish in ({"categorical": ["day"]}, {"text": ["1"]}, {"drop": ["-2"]}):
        assert CsvSource([str(path)], **reader, **wish).schema
    assert CsvSource([str(path)], only=["x"], **reader).schema.numbers == ["x"]
    assert CsvSource([str(path)], label="day").schema.numbers == ["x", "y"]


def test_bytes_that_are_no_text_are_told_once(tmp_path, monkeypatch):
    lines = [b"c,x,y\n", *[b"b\xc3\xa9,1,0\n"] * 300, *[b"caf\xe9,2,1\n"] * 300]
    path = tmp_path / "a.csv"
    path.write_bytes(b"".join(lines))
    source = CsvSource([str(path)], label="y", encode="onehot", numeric=["x"])
    source._block = 1 << 10
    with pytest.warns(UnicodeWarning, match=r"a\.csv, line 302: .*UTF-8") as told:
        rows = sum(len(chunk.labels) for chunk in source.batches())
    assert len(told) == 1
    assert rows == 600
    assert source.feature_names() == ["x", "c=bé", r"c=caf\xe9"]
    path.write_bytes(b"".join(lines[:300]))
    with warnings.catch_warnings(action="error"):
        list(CsvSource([str(path)], label="y", numeric=["x"]).batches())


def test_a_first_line_has_fields_of_any_length(write):
    name, cell = "n" * 200_000, "c" * 200_000
    source = CsvSource([write(f"a,{name},y\n1,2,0\n3,4,1\n")], label="y")
    assert source.feature_names() == ["a", name]
    source = CsvSource([write(f"1,{cell},0\n3,d,1\n5,d,1\n")], label="2", header=False)
    assert source.n_features == 4


def test_a_file_that_ends_after_its_first_line_or_has_other_line_ends_is_named(write):
    path = write("a,b,y\r1,2,0\r3,4,1\r")
    with pytest.raises(ValueError, match="the lines end in CR"):
        CsvSource([path], label="y").schema  # noqa: B018
    assert list(CsvSource([write("a,b,y")], label="y", header=True).batches()) == []


@pytest.mark.parametrize("kind", ["numeric", "date", "categorical", "text", "drop"])
def test_a_column_that_is_named_by_its_kind_makes_the_first_line_a_header(write, kind):
    lines = [f"{k % 7},2024-01-{1 + k % 28:02},x{k % 3}" for k in range(60)]
    column = "b" if kind == "date" else "a"
    path = write("\n".join(["a,b,c", *lines]) + "\n")
    source = CsvSource([path], **{kind: [column]})
    assert source.schema.columns == ["a", "b", "c"]
    words = write("\n".join(["u,v", *["x,y", "z,w"] * 30]) + "\n")
    assert CsvSource([words], categorical=["u"]).schema.header
    nameless = write("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="first line seems to have no names"):
        CsvSource([nameless], **{kind: ["q"]}).schema  # noqa: B018
