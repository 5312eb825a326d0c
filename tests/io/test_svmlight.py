"""The svmlight reader against a plain one, on good lines and on mutilated ones."""

import bz2
import gzip
import os
import re
import sys
import tracemalloc
import warnings
from subprocess import run

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from aucmax.core.validation import DataWarning
from aucmax.io import svmlight, text
from aucmax.io.background import prefetch
from aucmax.io.batch import Position
from aucmax.io.svmlight import SvmlightSource

pytestmark = pytest.mark.filterwarnings("ignore::aucmax.core.validation.DataWarning")

NUMBER = re.compile(
    rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE
)
INTEGER = re.compile(rb"[+-]?\d{1,18}")


def number(token, finite=True):
    if not NUMBER.fullmatch(token):
        raise ValueError(token)
    value = float(token)
    if finite and not np.isfinite(value):
        raise ValueError(token)
    return value


def reference_row(line, dtype, zero_based, n_features, missing, labelled=True):
    """Return the label and a dictionary of one line; None if it is blank."""
    tokens = line.split(b"#")[0].split()
    if not tokens:
        return None
    if not labelled and b":" in tokens[0]:
        tokens = [b"0", *tokens]
    label, row = number(tokens[0]), {}
    for token in tokens[1:]:
        index, colon, value = token.partition(b":")
        if not colon:
            raise ValueError(token)
        if index == b"qid":
            if not INTEGER.fullmatch(value):
                raise ValueError(token)
            continue
        if not INTEGER.fullmatch(index):
            raise ValueError(token)
        column = int(index) - (not zero_based)
        value = number(value, finite=False)
        if missing == "zero" and token[-1:].isalpha():
            value = 0.0
        value = dtype(value)
        if column < 0 or column in row or not np.isfinite(value):
            raise ValueError(token)
        if n_features is None and column >= 2**31 - 1:
            raise ValueError(token)
        if n_features is None or column < n_features:
            row[column] = value
    return label, row


def reference(
    data,
    dtype=np.float64,
    zero_based=False,
    n_features=None,
    missing="error",
    labelled=True,
):
    """Return labels, rows and {number of bad line: its text}, slowly."""
    labels, rows, bad = [], [], {}
    for line, content in enumerate(data.split(b"\n"), 1):
        try:
            with np.errstate(over="ignore"):
                row = reference_row(
                    content, dtype, zero_based, n_features, missing, labelled
                )
        except ValueError:
            bad[line] = content.removesuffix(b"\r")
        else:
            if row is not None:
                labels.append(row[0])
                rows.append(sorted(row[1].items()))
    return labels, rows, bad


def bits(array):
    return np.asarray(array).view(np.uint8).tobytes()


def check(path, data, **options):
    """Compare all that the reader says about a file with the reference."""
    labels, rows, bad = reference(data, **options)
    source = SvmlightSource(path, max_features=2**31 - 1, **options)
    dtype = options.get("dtype", np.float64)
    chunks = list(source.batches())
    found = [line for chunk in chunks for line in chunk.malformed]
    assert {line.line: line.text for line in found} == bad
    assert len(found) == len(bad)
    assert all(line.problem != svmlight._PUZZLE for line in found)
    assert all(line.file == source.files[0] for line in found)
    if options.get("labelled", True):
        y = np.concatenate([np.empty(0), *(chunk.labels for chunk in chunks)])
        assert bits(y) == bits(np.array(labels))
    else:
        assert all(chunk.labels is None for chunk in chunks)
    sizes = np.concatenate([[0], *(np.diff(chunk.rows.indptr) for chunk in chunks)])
    assert sizes[1:].tolist() == [len(row) for row in rows]
    entries = [entry for row in rows for entry in row]
    columns = [column for column, _ in entries]
    values = np.array([value for _, value in entries], dtype)
    none = np.empty(0, dtype)
    assert bits(np.concatenate([none, *(c.rows.data for c in chunks)])) == bits(values)
    assert [j for chunk in chunks for j in chunk.rows.indices.tolist()] == columns
    width = 0
    for chunk in chunks:
        width = max(width, chunk.rows.indices.max(initial=-1) + 1)
        assert chunk.rows.shape == (
            len(chunk.line_numbers),
            options.get("n_features") or width,
        )
        assert chunk.rows.dtype == dtype
        assert chunk.rows.indices.dtype == chunk.rows.indptr.dtype == np.int32
        chunk.rows.check_format(full_check=True)
    return len(found)


def write(path, data):
    path.write_bytes(data)
    return str(path)


GOOD = b"""\
+1 1:0.5 3:-2 7:1e-3\r
-1 qid:3 2:1. 9:.25 # a comment: 3:4

  # nothing else
0 \t 4:7\x0b 5:8 \r
2.5
1 3:1 1:2 2:3#unsorted
-1 qid:-7 2147483647:1
1e0 000000000000000003:0 +4:+5 5:-0
1 1:123456789012345678901234567890 2:9007199254740993.00000000000000000001
3 1:0.1"""


def test_good_lines(tmp_path):
    path = write(tmp_path / "a", GOOD)
    assert check(path, GOOD) == 0
    (chunk,) = SvmlightSource(path, max_features=2**31 - 1).batches()
    assert chunk.labels.tolist() == [1, -1, 0, 2.5, 1, -1, 1, 1, 3]
    assert chunk.rows[[0]].toarray()[0, :8].tolist() == [0.5, 0, -2, 0, 0, 0, 1e-3, 0]
    assert chunk.rows[[4]].toarray()[0, :4].tolist() == [2, 3, 1, 0]
    assert chunk.rows.has_canonical_format
    assert isinstance(chunk.rows, sparse.csr_array)
    assert (chunk.weights, chunk.text, chunk.extra) == (None, None, {})
    assert chunk.end == Position(0, len(GOOD), 11)
    assert chunk.done == len(GOOD)


def test_entries_at_every_place(tmp_path, monkeypatch):
    """Tokens of all lengths, wherever blocks begin and end."""
    monkeypatch.setattr(text, "BLOCK", 300)
    rng = np.random.default_rng(0)
    digits = rng.integers(48, 58, 4000).astype(np.uint8).tobytes()
    blanks = [b" ", b" ", b" ", b"  ", b"\t", b"\x0b", b" \r", b"\x01", b" #"]
    lines = []
    for size in [*range(1, 25), 60]:
        for index in (1, 7, 8, 9):
            at, tokens = rng.integers(0, 3000), []
            for before in (1, 7, 8, 9, size):
                whole, after = digits[at:][:before], digits[at + 99 :][:size]
                for value in (whole, whole + b"." + after, b"-" + whole + b"." + after):
                    column = b"%0*d" % (index, len(tokens) + 1)
                    tokens.append(column + b":" + value)
            blank = blanks[rng.integers(len(blanks))]
            lines.append(b"1 " + blank.join(tokens))
            lines.append(b"-1 " + blank.join(tokens[: rng.integers(len(tokens))]))
    data = b"\n".join(lines)
    path = write(tmp_path / "a", data)
    for options in ({}, {"dtype": np.float32}, {"n_features": 9}):
        assert 0 < check(path, data, **options) < len(lines) / 2


BAD = {
    b"": None,
    b"1:1 2:3": r"column label: the label is missing",
    b"x 1:1": r"'x' is not a finite number",
    b"nan 1:1": r"'nan' is not a finite number",
    b"1,2 1:1": r"'1,2' has several labels",
    b"1 0:1": r"column 0: .*zero_based=true",
    b"1 -3:1": r"column -3: the index -3 is negative",
    b"1 2.5:1": r"column 2.5: the index '2.5' is not an integer",
    b"1 x:1": r"'x' is not an integer",
    b"1 :1": r"'' is not an integer",
    b"1 1234567890123456789:1": r"18 digits",
    b"1 2147483648:1": r"column 2147483648: .*too large for an index.*hash",
    b"1 3:": r"column 3: the value '' is not a number",
    b"1 3:x": r"column 3: the value 'x' is not a number",
    b"1 3:1,5": r"column 3: the value '1,5' is not a number",
    b"1 3:1:2": r"column 3: the value '1:2' is not a number",
    b"1 3: 1": r"column 3: the value '' is not a number",
    b"1 3:1_0": r"'1_0' is not a number",
    b"1 3:nan": r"column 3: the value 'nan' is not finite; leave .* zero",
    b"1 3:-inf": r"column 3: the value '-inf' is not finite",
    b"1 3:1e999": r"column 3: the value '1e999' is too large for float64",
    b"1 3:1 4:2 3:5": r"column 3: duplicate feature",
    b"1 3:1 3:1": r"column 3: duplicate feature",
    b"1 3": r"'3' is not of the form index:value",
    b"1 abc 3:1": r"'abc' is not of the form index:value",
    b"1 qid:x 3:1": r"column qid: 'x' is not an integer",
    b"1 qid 3:1": r"'qid' is not of the form",
    b"1 QID:3": r"'QID' is not an integer",
    b"\x00": r"'\\x00' is not a finite number",
    b"1 \xff:1": r"is not an integer",
    b"1 3:" + b"x" * 100: r"'x{37}\.\.\.'",
    # At the limit of float64: rounds to infinity.
    b"1 3:%d" % (2**1024 - 2**970): "too large for float64",
}


def test_bad_lines(tmp_path):
    data = b"".join(line + b"\n1 1:1\n" for line in BAD)
    path = write(tmp_path / "a", data)
    assert check(path, data) == len(BAD) - 1
    (chunk,) = SvmlightSource(path).batches()
    assert chunk.rows.shape == (len(BAD), 1)
    for bad, (line, message) in zip(
        chunk.malformed, list(BAD.items())[1:], strict=True
    ):
        assert bad.text == line
        assert re.search(message, str(bad)), str(bad)
        assert str(bad).startswith(f"{path}, line {bad.line}")


def test_lines_without_labels(tmp_path):
    data = b"3:1 5:2\n1 2:7\nqid:3 1:4 # x\n1 \n2:x\nspam 1:1\n\n-1\n1:1 1:2\n"
    path = write(tmp_path / "a", data)
    assert check(path, data, labelled=False, n_features=5) == 3
    (chunk,) = SvmlightSource(path, labelled=False).batches()
    assert chunk.line_numbers.tolist() == [1, 2, 3, 4, 8]
    assert chunk.rows[[0]].toarray().tolist() == [[0, 0, 1, 0, 2]]
    assert "column 2: the value 'x'" in str(chunk.malformed[0])


@pytest.mark.parametrize("start", [b"1 ", b""])
def test_queries_are_remarked_upon(tmp_path, start):
    path = write(tmp_path / "a", (start + b"qid:1 1:1\n") * 3)
    with pytest.warns(DataWarning, match="qid is ignored: all rows are ranked tog"):
        list(SvmlightSource(path, labelled=False).batches())
    path = write(tmp_path / "b", b"1 1:1 # qid:1\n" * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(SvmlightSource(path).batches())


def test_missing_values(tmp_path):
    data = b"1 1:nan 2:3\n1 1:-INF 2:+infinity\n1 1:1e999\n1 1:nano\nnan 1:1\n"
    path = write(tmp_path / "a", data)
    assert check(path, data, missing="zero") == 3
    (chunk,) = SvmlightSource(path, missing="zero").batches()
    assert chunk.rows.toarray().tolist() == [[0, 3], [0, 0]]


def test_too_large_for_float32(tmp_path):
    # The first three are finite in float32, the last two only after rounding.
    values = b"1e38 3.4028235e38 3.4028235677e38 3.40282357e38 1e39 -1e300".split()
    data = b"".join(b"1 1:%b\n" % value for value in values)
    path = write(tmp_path / "a", data)
    assert check(path, data, dtype=np.float32) == 3
    bad = next(SvmlightSource(path, dtype=np.float32).batches()).malformed
    assert "too large for float32" in bad[0].problem
    assert check(path, data) == 0


def test_zero_based_and_width(tmp_path):
    data = b"1 0:1 2:3\n1 0:4 7:5 99999999999:6\n1 1:1 8:nan\n"
    path = write(tmp_path / "a", data)
    assert check(path, data, zero_based=True) == 2
    for n_features in (1, 3, 8, 20):
        assert check(path, data, zero_based=True, n_features=n_features) == 1
    assert check(path, data, n_features=5) == 3
    source = SvmlightSource(path, n_features=3, zero_based=True)
    assert source.n_features == 3
    (chunk,) = source.batches()
    assert chunk.rows.toarray().tolist() == [[1, 0, 3], [4, 0, 0]]
    # What is left out is not looked at for repetitions.
    data = b"1 5:1 5:2 1:1 6:1 6:3\n"
    assert check(write(tmp_path / "a", data), data, n_features=4) == 0


def made(n=3000, seed=0, nnz=6, shuffled=True):
    """Return good lines, of all ways to write numbers."""
    rng = np.random.default_rng(seed)
    forms = ["%.6g", "%d", "%r", "%.3e", "%.20f", "%+.2f"]
    lines = []
    for k in range(n):
        columns = np.sort(rng.choice(30, rng.integers(0, nnz), replace=False)) + 1
        if shuffled and k % 7 == 0:
            columns = rng.permutation(columns)
        entries = [
            f"{j}:{forms[f] % float(x)}"
            for j, f, x in zip(
                columns.tolist(),
                rng.integers(0, len(forms), len(columns)),
                rng.standard_cauchy(len(columns)),
                strict=True,
            )
        ]
        lines.append(" ".join([str(rng.choice(["1", "-1", "+1", "0.5"])), *entries]))
    return [line.encode() for line in lines]


def mutilate(lines, rng):
    """Return each line with some bytes changed, left out, put in or exchanged."""
    alphabet = b"0123456789.:: \t-+eE#,nainfqd\r\n\x00\xff_"
    places = rng.random((len(lines), 4)).tolist()
    kinds = rng.integers(0, 6, (len(lines), 2)).tolist()
    letters = rng.choice(list(alphabet), (len(lines), 2)).tolist()
    result = []
    for line, place, kind, letter in zip(lines, places, kinds, letters, strict=True):
        for step in range(2):
            a = int(place[2 * step] * len(line))
            b = int(place[2 * step + 1] * len(line))
            byte = bytes([letter[step]])
            if kind[step] == 0:
                line = line[:a] + byte + line[a + 1 :]
            elif kind[step] == 1:
                line = line[:a] + line[a + 1 :]
            elif kind[step] == 2:
                line = line[:a] + byte + line[a:]
            elif kind[step] == 3:  # a piece once more
                line = line[: max(a, b)] + line[min(a, b) :]
        result.append(line)
    return result


def test_mutilated_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1 << 18)
    rng = np.random.default_rng(1)
    lines = made(4000) * 13
    data = [b"\n".join(mutilate(lines, rng)) for _ in range(2)]
    path = tmp_path / "a"
    n_bad = check(write(path, data[0]), data[0])
    assert 0.2 < n_bad / len(lines) < 0.8
    options = {"dtype": np.float32, "zero_based": True, "n_features": 20}
    n_bad = check(write(path, data[1]), data[1], **options, missing="zero")
    assert 0.2 < n_bad / len(lines) < 0.8


@st.composite
def svmlight_text(draw):
    """Return tokens that are nearly right, in any order."""
    numbers = st.one_of(
        st.floats().map(repr),
        st.integers(-(10**25), 10**25).map(str),
        st.sampled_from(
            ["1e5", "-.5", "5.", "nan", "-Inf", "1e400", "", "x", "1e", "+"]
        ),
    )
    index = st.one_of(
        st.integers(-1, 12).map(str),
        st.sampled_from(["qid", "", "2147483648", "x", "00", "9" * 19]),
    )
    entry = st.builds("{}:{}".format, index, numbers)
    token = st.one_of(entry, entry, entry, numbers, st.sampled_from(["#", "1:#", ":"]))
    space = st.sampled_from([" ", " ", "  ", "\t", " \x0c", "\r"])
    line = st.lists(st.builds("{}{}".format, token, space), max_size=6).map("".join)
    lines = draw(st.lists(st.builds("{}{}".format, st.sampled_from(["1 ", ""]), line)))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@settings(max_examples=80, deadline=None)
@given(
    data=svmlight_text(),
    dtype=st.sampled_from([np.float32, np.float64]),
    zero_based=st.booleans(),
    n_features=st.sampled_from([None, 1, 5]),
    missing=st.sampled_from(["error", "zero"]),
    labelled=st.booleans(),
)
def test_any_text(tmp_path_factory, data, **options):
    path = tmp_path_factory.getbasetemp() / "any"
    check(write(path, data), data, **options)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(
            st.integers(1, 2**31 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
            max_size=5,
        )
    )
)
def test_what_was_written_is_read(tmp_path_factory, rows):
    lines = [
        " ".join(["1", *(f"{j}:{x!r}" for j, x in row.items())]) + "\n" for row in rows
    ]
    path = write(tmp_path_factory.getbasetemp() / "some", "".join(lines).encode())
    found = [
        dict(zip(row.indices + 1, row.data, strict=True))
        for chunk in SvmlightSource(path, max_features=2**31 - 1).batches()
        for row in (chunk.rows[[i]] for i in range(len(chunk.labels)))
    ]
    assert found == rows


def test_many_long_numbers(tmp_path):
    tie = b"9007199254740993" + b"." + b"0" * 30  # exactly between two floats
    above = tie + b"1"
    line = b"%b 1:%b 2:-%b 3:1\n" % (tie, above, tie)
    data = line * 40 + b"1 1:" + tie + b" 2:x\n" + line
    assert check(write(tmp_path / "a", data), data) == 1


def chunk_key(chunk):
    X = chunk.rows
    return [
        bits(chunk.labels),
        bits(X.data),
        X.indices.tolist(),
        X.indptr.tolist(),
        chunk.malformed,
        chunk.end,
        chunk.text and [chunk.text.data, *map(bytes, chunk.text[1:])],
    ]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 1 << 10)


def test_reading_goes_on_anywhere(tmp_path, small_blocks):
    rng = np.random.default_rng(2)
    lines = mutilate(made(150, 3), rng)
    paths = [
        write(tmp_path / "a", b"\r\n".join(lines[:60])),
        write(tmp_path / "b", b"# nothing\n" * 300),
        write(tmp_path / "c.bz2", bz2.compress(b"\n".join(lines[60:]))),
    ]
    source = SvmlightSource(paths, n_features=25, keep_text=True)
    chunks = list(source.batches())
    keys = [chunk_key(chunk) for chunk in chunks]
    assert len(keys) > 5
    assert {chunk.end.file for chunk in chunks} == {0, 2}  # no empty chunks
    for k, chunk in enumerate(chunks):
        assert [chunk_key(c) for c in source.batches(chunk.end)] == keys[k + 1 :]
    assert [chunk_key(c) for c in prefetch(source.batches())] == keys
    lines_of = [
        chunk.text.data[a:b]
        for chunk in chunks
        for a, b in zip(chunk.text.starts, chunk.text.stops, strict=True)
    ]
    bad = [line.text for chunk in chunks for line in chunk.malformed]
    text_lines = [line for part in (lines[:60], lines[60:]) for line in part]
    text_lines = b"\n".join(text_lines).replace(b"\r\n", b"\n").split(b"\n")
    kept = [line.removesuffix(b"\r") for line in text_lines]
    kept = [line for line in kept if line.split(b"#")[0].split()]
    assert sorted(lines_of + bad) == sorted(kept)


def test_width_grows_only(tmp_path, small_blocks):
    data = b"1 9:1\n" + b"1 1:1 2:2\n" * 300 + b"1 20:1\n"
    source = SvmlightSource(write(tmp_path / "a", data))
    assert source.n_features is None
    widths = [chunk.rows.shape[1] for chunk in source.batches()]
    assert widths == [9, 9, 20]


def test_packed_is_plain(tmp_path, small_blocks):
    data = b"\n".join(made(200, 4))
    plain = SvmlightSource(write(tmp_path / "a", data))
    packed = SvmlightSource(write(tmp_path / "a.gz", gzip.compress(data)))
    a, b = (list(source.batches()) for source in (plain, packed))
    assert [chunk_key(chunk) for chunk in a] == [chunk_key(chunk) for chunk in b]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_as_scikit_learn(tmp_path, dtype):
    data = b"\n".join(made(500, 5, shuffled=False))
    path = write(tmp_path / "a", data)
    (chunk,) = SvmlightSource(path, dtype=dtype).batches()
    X, y = load_svmlight_file(path, zero_based=False)
    assert chunk.labels.tolist() == y.tolist()
    assert (X.astype(dtype) != chunk.rows).nnz == 0


def test_memory_is_bounded(tmp_path):
    block = b"\n".join(made(2000, 6)) + b"\n"
    path = write(tmp_path / "a", block * (40_000_000 // len(block)))
    tracemalloc.start()
    rows = sum(len(chunk.labels) for chunk in prefetch(SvmlightSource(path).batches()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 2000 * (40_000_000 // len(block))
    assert peak < 10 * text.BLOCK  # three chunks at most, and a block being read


def test_recipe_and_parameters(tmp_path):
    path = write(tmp_path / "a", b"")
    source = SvmlightSource(path, zero_based=True, missing="zero")
    assert source.recipe() == {
        "format": "svmlight",
        "zero_based": True,
        "missing": "zero",
        "max_features": 2**27,
        "dtype": "float64",
    }
    assert source.feature_names() is None
    assert list(source.batches()) == []
    wrong = {"dtype": int, "missing": "x", "n_features": 0, "max_features": "many"}
    for name, value in [*wrong.items(), ("max_features", 2**31)]:
        with pytest.raises(ValueError, match=name):
            SvmlightSource(path, **{name: value})


def test_one_index_far_beyond_the_others_is_a_bad_line(tmp_path):
    path = write(tmp_path / "a", b"1 1:1\n0 3:1 1000000000:1\n1 134217728:1\n")
    (chunk,) = SvmlightSource(path).batches()
    assert chunk.rows.shape == (2, 2**27)
    (bad,) = chunk.malformed
    text = "column 1000000000: .*limit is 134217728 .*max_features=1000000000, or"
    assert re.search(text, str(bad))
    (chunk,) = SvmlightSource(path, max_features=10**9).batches()
    assert (chunk.rows.shape, chunk.malformed) == ((3, 10**9), [])
    (chunk,) = SvmlightSource(path, max_features=2).batches()
    assert [line.line for line in chunk.malformed] == [2, 3]
    (chunk,) = SvmlightSource(path, n_features=2, max_features=1).batches()
    assert (chunk.rows.shape, chunk.malformed) == (
        (3, 2),
        [],
    )  # further ones are left out


def test_empty_files_and_comments_give_no_chunks(tmp_path):
    for data in (b"", b"\n", b"\n\n  \r\n# c\n", b"#", b"\xef\xbb\xbf"):
        assert list(SvmlightSource(write(tmp_path / "a", data)).batches()) == []


def test_compiled_is_python(tmp_path):
    """The Python body of the kernel reads the same, and not beyond the end."""
    texts = [b"\n".join(mutilate(made(40), np.random.default_rng(7)))]
    for digits in (8, 9, 18, 19, 40, 64):  # of an index
        token = (b"1" * digits + b":").ljust(81, b"2")
        texts += [b" " * (-k % 8) + b"1 " + token for k in range(8)]
    paths = [write(tmp_path / str(k), text) for k, text in enumerate(texts)]
    code = (
        "import sys; from aucmax.io.svmlight import SvmlightSource\n"
        "for path in sys.argv[1:]:\n"
        "    for c in SvmlightSource(path).batches():\n"
        "        X, y = c.rows, c.labels\n"
        "        print(y.tolist(), X.data.tolist(), X.indices.tolist(), c.malformed)\n"
    )
    expected = ""
    for path in paths:
        for c in SvmlightSource(path).batches():
            row = (
                c.labels.tolist(),
                c.rows.data.tolist(),
                c.rows.indices.tolist(),
                c.malformed,
            )
            expected += " ".join(map(str, row)) + "\n"
    done = run(
        [sys.executable, "-W", "ignore", "-c", code, *paths],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
    )
    assert done.stdout == expected
