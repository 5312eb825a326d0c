"""Random svmlight files against scikit-learn and against a slow, obvious parser.

AUCMAX_FUZZ=full in the environment reads 100,000 lines instead of 2,000.
"""

import os
import random
import re

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from aucmax.io import text
from aucmax.io.svmlight import SvmlightSource

pytestmark = pytest.mark.filterwarnings("ignore::aucmax.core.validation.DataWarning")

LINES = 100_000 if os.environ.get("AUCMAX_FUZZ") == "full" else 2_000
FILE_LINES = 500

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
INTEGER = re.compile(rb"[+-]?\d{1,18}")


def parse(line):
    """Return the label and the entries of a line; None if it is blank."""
    tokens = line.split(b"#")[0].split()
    if not tokens:
        return None
    entries = {}
    for token in tokens[1:]:
        name, colon, value = token.partition(b":")
        if name == b"qid" and INTEGER.fullmatch(value):
            continue
        if not (colon and INTEGER.fullmatch(name)):
            raise ValueError(token)
        column = int(name) - 1
        if not 0 <= column < 2**27 or column in entries:
            raise ValueError(token)
        entries[column] = finite(value)
    return finite(tokens[0]), sorted(entries.items())


def finite(token):
    if not NUMBER.fullmatch(token) or not np.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def expected(data):
    """Return [(line number, label, entries)], and the numbers of malformed lines."""
    rows, malformed = [], []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            row = parse(line)
        except ValueError:
            malformed.append(number)
        else:
            if row is not None:
                rows.append((number, *row))
    return rows, malformed


def found(path):
    rows, malformed = [], []
    for chunk in SvmlightSource(str(path)).batches():
        X = chunk.rows
        malformed += [bad.line for bad in chunk.malformed]
        for i, (number, label) in enumerate(
            zip(chunk.line_numbers.tolist(), chunk.labels.tolist(), strict=True)
        ):
            span = slice(X.indptr[i], X.indptr[i + 1])
            entries = zip(X.indices[span].tolist(), X.data[span].tolist(), strict=True)
            rows.append((number, label, list(entries)))
    return rows, malformed


def random_number(rng):
    x = rng.choice([rng.gauss(0, 1), rng.expovariate(1) * 10 ** rng.randint(-30, 30)])
    form = rng.choice(["%r", "%.4g", "%d", "%.6f", "%.3e", "%.25f", "%+.2f", "%.17g"])
    return (form % x).encode()


def random_line(rng, unsorted=0.2):
    """Return a valid line."""
    columns = rng.sample(range(1, 60), rng.randint(0, 12))
    if rng.random() >= unsorted:
        columns.sort()
    tokens = [rng.choice([b"1", b"-1", b"+1", b"0", random_number(rng)])]
    if rng.random() < 0.1:
        tokens.append(b"qid:%d" % rng.randint(0, 99))
    tokens += [b"%d:%b" % (column, random_number(rng)) for column in columns]
    line = rng.choice([b" ", b" ", b" ", b"  ", b"\t"]).join(tokens)
    return line + rng.choice([b"", b"", b"", b" ", b"\r", b" # 3:x", b"#"])


def damaged(line, rng):
    """Change, insert, delete or repeat bytes of a line."""
    alphabet = b"0123456789.:: \t-+eE#,nainfqd\r\x00\xff_\n"
    for _ in range(rng.randint(1, 3)):
        a, b = sorted(rng.choices(range(len(line) + 1), k=2))
        byte = bytes([rng.choice(alphabet)])
        line = rng.choice(
            [
                line[:a] + byte + line[a + 1 :],
                line[:a] + byte + line[a:],
                line[:a] + line[a + 1 :],
                line[:b] + line[a:],
            ]
        )
    return line


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_random_lines(share, tmp_path):
    """Valid lines only, which Arrow parses in bulk, and valid and damaged lines."""
    rng = random.Random(int(10 * share))
    path = tmp_path / "a"
    n_malformed = 0
    for _ in range(0, LINES, 2 * FILE_LINES):
        lines = [random_line(rng) for _ in range(FILE_LINES)]
        lines = [damaged(x, rng) if rng.random() < share else x for x in lines]
        data = b"\n".join(lines) + rng.choice([b"", b"\n"])
        path.write_bytes(data)
        rows, malformed = found(path)
        assert (rows, malformed) == expected(data)
        n_malformed += len(malformed)
    assert (n_malformed > 0) == (share > 0)


def test_random_lines_as_scikit_learn_reads_them(tmp_path):
    rng = random.Random(1)
    lines = [random_line(rng, unsorted=0.0) for _ in range(FILE_LINES)]
    path = tmp_path / "a"
    path.write_bytes(b"\n".join(line.rstrip(b"\r") for line in lines))
    X, y = load_svmlight_file(str(path), zero_based=False)
    rows, malformed = found(path)
    assert malformed == []
    assert [label for _, label, _ in rows] == y.tolist()
    assert [column for *_, row in rows for column, _ in row] == X.indices.tolist()
    assert [value for *_, row in rows for _, value in row] == X.data.tolist()


NASTY = (
    b"\xef\xbb\xbf+1 1:0.1 2:1e-7 3:-12345678901234567890.5\r\n"
    b"\n  # only a comment\n"
    b"-1 qid:7 9:.5 4:5. 1:+3 # 4:x\r\n"
    b"1 1:nan\n"
    b"1 1:1 1:2\n"
    b"x 1:1\n\x00\n1 :\n1 7:\n"
    b"0.1234567890123456 2147483648:1\n"
    b"1\t3:9007199254740993\x0b 5:0.30000000000000004\n"
    b"2 1:1e400\n-0 6:1e-400\n"
    b"1 8:17 12:1"
)


def test_blocks_cut_at_every_byte_give_the_same_rows(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(NASTY)
    result = expected(NASTY.removeprefix(b"\xef\xbb\xbf"))
    assert [number for number, *_ in result[0]] == [1, 4, 12, 14, 15]
    assert result[1] == [5, 6, 7, 8, 9, 10, 11, 13]
    for size in range(1, len(NASTY) + 2):
        monkeypatch.setattr(text, "BLOCK", size)
        monkeypatch.setattr(text, "_FIRST", size)
        assert found(path) == result


def test_reading_resumes_at_every_block(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(NASTY)
    monkeypatch.setattr(text, "BLOCK", 1)  # every line is a block
    source = SvmlightSource(str(path))
    chunks = list(source.batches())
    for k, chunk in enumerate(chunks):
        rest = list(source.batches(chunk.end))
        assert [c.end for c in rest] == [c.end for c in chunks[k + 1 :]]
        assert [c.malformed for c in rest] == [c.malformed for c in chunks[k + 1 :]]
        assert [c.labels.tolist() for c in rest] == [
            c.labels.tolist() for c in chunks[k + 1 :]
        ]
