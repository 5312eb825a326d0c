"""``aucmax score``."""

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import shlex
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import aucmax
from aucmax.cli.terminal import ReadingBar
from aucmax.io.malformed_lines import BadLines
from aucmax.workflows.score import Model, write_scores
from helpers.commands import HEADER, fields, invoke, table, write_table

LINES = table(50, seed=1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("score") / "new.csv", LINES)


@pytest.fixture(scope="module")
def expected(model, data):
    """Return the scores computed in Python."""
    found = Model.load(model)
    chunks = list(found.open([str(data)]).batches())
    scores = [found.estimator.decision_function(chunk.rows) for chunk in chunks]
    return np.concatenate(scores).tolist()


def test_lines_are_copied_unchanged(model, data, expected):
    result = invoke("score", model, data)
    assert result.exit_code == 0
    rows = [f"{line},{score!r}\n" for line, score in zip(LINES, expected, strict=True)]
    assert result.stdout == f"{HEADER},score\n" + "".join(rows)
    assert result.stderr == ""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_delimiter_and_line_ends_are_kept(model, expected, tmp_path, end, delimiter):
    lines = [line.replace(",", delimiter) for line in LINES if "Bath" not in line]
    scores = [s for line, s in zip(LINES, expected, strict=True) if "Bath" not in line]
    header = HEADER.replace(",", delimiter)
    path = write_table(tmp_path / "new.txt", lines, header, end)
    out = invoke("score", model, path).stdout_bytes.decode()
    rows = [
        f"{line}{delimiter}{score!r}{end}"
        for line, score in zip(lines, scores, strict=True)
    ]
    assert out == f"{header}{delimiter}score{end}" + "".join(rows)


def test_columns_in_another_order_and_without_labels(model, data, expected, tmp_path):
    rows = fields(data.read_text())
    lines = [
        f'x,{r["income"]},{r["age"]},"{r["town"].replace(chr(34), 2 * chr(34))}"'
        for r in rows
    ]
    path = write_table(tmp_path / "new.csv", lines, "note,income,age,town")
    out = fields(invoke("score", model, path).stdout)
    assert [float(row["score"]) for row in out] == expected
    assert {row["note"] for row in out} == {"x"}


def test_existing_score_column_is_kept(model, tmp_path):
    lines = [f"{line},7,8" for line in LINES]
    path = write_table(tmp_path / "new.csv", lines, f"{HEADER},score,score_2")
    rows = fields(invoke("score", model, path).stdout)
    assert {(row["score"], row["score_2"]) for row in rows} == {("7", "8")}
    assert all(float(row["score_3"]) for row in rows)


def test_several_files_have_one_header(model, data, expected):
    out = invoke("score", model, data, data).stdout
    assert out.count("score") == 1
    assert [float(row["score"]) for row in fields(out)] == 2 * expected


def test_files_with_different_columns_are_an_error(model, data, tmp_path):
    rows = [f"{age},no,York,1" for age in range(20, 40)]
    other = write_table(tmp_path / "other.csv", rows, "age,clicked,town,income")
    assert invoke("score", model, other).exit_code == 0
    result = invoke("score", model, data, other, "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert f"{other} has other columns than {data}" in result.stderr
    assert os.listdir(tmp_path) == ["other.csv"]


def test_empty_data_give_a_header(model, tmp_path):
    path = write_table(tmp_path / "new.csv", [])
    assert invoke("score", model, path).stdout == f"{HEADER},score\n"


@pytest.mark.parametrize(
    ("name", "unpack"),
    [
        ("out.csv", bytes),
        ("out.csv.gz", gzip.decompress),
        ("out.csv.bz2", bz2.decompress),
        ("out.csv.xz", lzma.decompress),
        ("out.csv.zst", None),
    ],
)
def test_output_is_compressed_by_its_name(model, data, tmp_path, name, unpack):
    if unpack is None:
        zstandard = pytest.importorskip("zstandard")

        def unpack(content):
            return zstandard.ZstdDecompressor().decompressobj().decompress(content)

    result = invoke("score", model, data, "-o", tmp_path / name)
    assert result.exit_code == 0
    assert result.stdout.startswith("50 rows scored in ")
    expected = invoke("score", model, data).stdout_bytes
    assert unpack((tmp_path / name).read_bytes()) == expected
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("before", [None, "what was there"])
def test_malformed_line_leaves_no_partial_output(model, tmp_path, before):
    path = write_table(tmp_path / "new.csv", [*LINES, "old,York,1,no"])
    output = tmp_path / "out.csv"
    if before is not None:
        output.write_text(before)
    result = invoke("score", model, path, "-o", output)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "column age" in result.stderr
    assert "--on-bad-line skip" in result.stderr
    assert (output.read_text() if output.exists() else None) == before
    assert {"new.csv", "out.csv"} >= set(os.listdir(tmp_path))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_skipped_lines_are_copied_without_a_score(model, expected, tmp_path, end):
    bad = ["old,York,1,no", "1,2", "young,Bath,2,yes"]
    lines = [bad[0], *LINES[:20], *bad[1:], *LINES[20:], bad[0]]
    scores = ["", *expected[:20], "", "", *expected[20:], ""]
    path = write_table(tmp_path / "new.csv", lines, end=end)
    result = invoke("score", model, path, "--on-bad-line", "skip")
    assert result.exit_code == 0
    rows = [f"{HEADER},score", *map("{},{}".format, lines, scores)]
    assert result.stdout_bytes.decode() == "".join(row + end for row in rows)
    assert result.stderr.startswith(
        "4 malformed lines were given no score; the first: "
    )


def test_all_lines_malformed(model, tmp_path):
    path = write_table(tmp_path / "new.csv", ["old,York,1,no", "1,2"])
    result = invoke("score", model, path, "--on-bad-line", "skip")
    assert result.stdout == f"{HEADER},score\nold,York,1,no,\n1,2,\n"


def test_malformed_svmlight_line_gives_an_empty_line(svmlight, tmp_path):
    folder, X, _ = svmlight
    lines = (folder / "rows.svm").read_text().splitlines()
    path = tmp_path / "rows.svm"
    path.write_text("\n".join([*lines[:3], "1 x:1", *lines[3:], "1 1:z", ""]))
    result = invoke("score", folder / "m.aucmax", path, "--on-bad-line", "skip")
    found = aucmax.load(folder / "m.aucmax").decision_function(sparse.csr_array(X))
    scores = [repr(score) for score in found.tolist()]
    assert result.stdout.split("\n") == [*scores[:3], "", *scores[3:], "", ""]


def test_malformed_parquet_row_has_a_null_score(model, data, expected, tmp_path):
    options = pa.csv.ParseOptions(newlines_in_values=True)
    rows = pa.csv.read_csv(data, parse_options=options).to_pylist()
    for place in (0, 7, 8, 49):
        rows[place]["age"] = None
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "new.parquet", row_group_size=20)
    output = tmp_path / "out.parquet"
    command = "score", model, tmp_path / "new.parquet", "-o", output
    assert invoke(*command, "--on-bad-line", "skip").exit_code == 0
    out = pq.read_table(output)
    assert out.drop(["score"]).equals(table)
    scores = out["score"].to_pylist()
    assert [scores[k] for k in (0, 7, 8, 49)] == [None] * 4
    assert scores[1:7] + scores[9:49] == expected[1:7] + expected[9:49]
    result = invoke(*command[:3], "--on-bad-line", "skip")
    assert [row["score"] for row in fields(result.stdout)].count("") == 4


def test_parquet_stays_parquet_or_becomes_csv(model, data, expected, tmp_path):
    options = pa.csv.ParseOptions(newlines_in_values=True)
    rows = pa.csv.read_csv(data, parse_options=options)
    pq.write_table(rows, tmp_path / "new.parquet", row_group_size=20)
    assert (
        invoke(
            "score", model, tmp_path / "new.parquet", "-o", tmp_path / "out.parquet"
        ).exit_code
        == 0
    )
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.column_names == [*rows.column_names, "score"]
    assert out.drop(["score"]).equals(rows)
    assert out["score"].to_pylist() == expected
    result = invoke("score", model, tmp_path / "new.parquet")
    assert [float(row["score"]) for row in fields(result.stdout)] == expected


def test_csv_does_not_become_parquet(model, data, tmp_path):
    result = invoke("score", model, data, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 1
    assert "only Parquet data can be written as Parquet" in result.stderr
    assert os.listdir(tmp_path) == []


@pytest.fixture(scope="module")
def svmlight(tmp_path_factory):
    """Return a folder with a model trained in Python and data, and the data."""
    folder = tmp_path_factory.mktemp("svmlight")
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((40, 5)), 2) * (rng.random((40, 5)) < 0.6)
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(0, 0.5, 40) > 0, 1, -1)
    aucmax.LeastSquaresAUC().fit(sparse.csr_array(X), y).save(folder / "m.aucmax")
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v)
        for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    (folder / "rows.svm").write_text("\n".join(lines) + " 9:3.5\n")  # a new feature
    return folder, X, y


def test_svmlight_gives_one_score_per_line(svmlight):
    folder, X, _ = svmlight
    result = invoke("score", folder / "m.aucmax", folder / "rows.svm")
    expected = aucmax.load(folder / "m.aucmax").decision_function(sparse.csr_array(X))
    assert result.stdout == "".join(f"{score!r}\n" for score in expected.tolist())


def test_unknown_features_are_counted(svmlight, tmp_path):
    folder, *_ = svmlight
    wide = tmp_path / "wide.svm"
    wide.write_text("+1 1:2 9:0 10:1\n-1 2:1 70:3 123:4\n+1 9:0\n-1 1:1\n")
    model = folder / "m.aucmax"
    for command in (("score", model, wide), ("evaluate", model, wide)):
        result = invoke(*command)
        assert result.exit_code == 0
        noted = "2 rows have features beyond the 5 of the model, up to number "
        assert noted + "123: these features are ignored" in result.stderr
    wide.write_text("+1 1:2 5:1\n-1 2:1\n")
    assert invoke("score", model, wide).stderr == ""


def test_svmlight_needs_no_labels(svmlight, tmp_path):
    folder, *_ = svmlight
    rows = (folder / "rows.svm").read_text().splitlines()
    trained = tmp_path / "m.aucmax"
    command = "train", folder / "rows.svm", "-o", trained, "--algorithm", "SPAM"
    assert invoke(*command).exit_code == 0
    bare = tmp_path / "bare.svm"
    bare.write_text("".join(row.partition(" ")[2] + "\n" for row in rows))
    blank = [not row.partition(" ")[2] for row in rows]
    for model in (trained, folder / "m.aucmax"):
        with_labels = invoke("score", model, folder / "rows.svm").stdout.splitlines()
        result = invoke("score", model, bare)
        assert result.exit_code == 0, result.stderr
        # Blank lines give no score.
        kept = [s for s, none in zip(with_labels, blank, strict=True) if not none]
        assert result.stdout.splitlines() == kept
        result = invoke("evaluate", model, bare)
        assert "the label is missing" in result.stderr


def test_model_trained_in_python_does_not_read_tables(svmlight, data):
    folder, *_ = svmlight
    result = invoke("score", folder / "m.aucmax", data)
    assert result.exit_code == 1
    assert "trained in Python" in result.stderr
    assert "decision_function" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.aucmax", "x.csv"], "nothing.aucmax"),
        (["{model}", "nothing.csv"], "nothing.csv"),
        (["{model}", "{data}", "-o", "no/folder/out.csv"], "folder"),
        (["{model}", "{data}", "--json"], "-o FILE"),
        (["{data}", "{data}"], "not an aucmax model file"),
    ],
)
def test_errors_are_reported_in_one_line(model, data, arguments, words):
    arguments = [word.format(model=model, data=data) for word in arguments]
    result = invoke("score", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def aucmax_command(*arguments):
    return [sys.executable, "-m", "aucmax", *map(str, arguments)]


def test_pandas_index_is_kept_and_is_not_a_feature(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(60), "kind": list("abc") * 20})
    frame["kind"] = frame["kind"].astype("category")
    frame["y"] = frame["x"] + rng.normal(0, 0.5, 60) > 0
    frame.index = rng.permutation(60) * 7  # it tells nothing, in any order
    data, model = tmp_path / "rows.parquet", tmp_path / "m.aucmax"
    frame.to_parquet(data)
    command = ("train", data, "-o", model, "--label", "y", "--algorithm")
    assert invoke(*command, "LeastSquaresAUC").exit_code == 0
    assert "__index_level_0__" not in Model.load(model).names()
    output = tmp_path / "scored.parquet"
    assert invoke("score", model, data, "-o", output).exit_code == 0
    scored = pd.read_parquet(output)
    pd.testing.assert_frame_equal(scored.drop(columns="score"), frame)
    frame.reset_index(drop=True).to_parquet(data)  # an index that needs no column
    assert invoke("score", model, data, "-o", output).exit_code == 0
    again = pd.read_parquet(output)
    assert again["score"].tolist() == scored["score"].tolist()
    assert isinstance(again.index, pd.RangeIndex)


def test_reader_may_close_the_pipe(model, tmp_path):
    path = write_table(tmp_path / "new.csv", LINES * 200)
    with subprocess.Popen(
        aucmax_command("score", model, path, path, path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout.readline() == f"{HEADER},score\n".encode()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_full_disk_error_names_the_file(model, data):
    result = invoke("score", model, data, "-o", "/dev/full")
    assert result.exit_code == 1
    assert result.stderr == "Error: /dev/full: No space left on device\n"
    assert not os.path.isfile("/dev/full")  # a device is written to, not replaced
    # Without a buffer: test_output_that_does_not_fit_is_an_error.
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            aucmax_command("score", model, data),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    assert done.returncode == 1
    assert done.stderr == b"Error: standard output: No space left on device\n"


class Slow(io.RawIOBase):
    """Accepts few bytes at a time, up to a limit."""

    def __init__(self, room):
        self.taken, self.room = bytearray(), room

    def writable(self):
        return True

    def write(self, content):
        part = bytes(content)[: min(100, self.room - len(self.taken))]
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.taken += part
        return len(part)


@pytest.mark.parametrize("room", [10**6, 1000])
def test_output_in_small_parts_is_whole_or_an_error(model, data, monkeypatch, room):
    expected = invoke("score", model, data).stdout_bytes
    slow = Slow(room)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(slow, "utf-8"))
    score = partial(
        write_scores,
        Model.load(model),
        [str(data)],
        None,
        BadLines("fail"),
        partial(ReadingBar, shown=False),
    )
    if room > len(expected):
        assert score() == (50, 50)
    else:
        with pytest.raises(OSError, match="standard output"):
            score()
    assert bytes(slow.taken) == expected[:room]
    assert sys.stdout.buffer is slow


@pytest.mark.skipif(os.name != "posix", reason="nobody limits the size of files")
@pytest.mark.parametrize(
    ("verb", "unbuffered"),
    [
        ("score {m} {d}", "1"),
        ("evaluate {m} {d} --json", ""),
    ],
)
def test_output_that_does_not_fit_is_an_error(
    model, tmp_path, monkeypatch, verb, unbuffered
):
    """A short write must be an error, not a loss of data."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    data = write_table(tmp_path / "new.csv", LINES)
    words = verb.format(m=model, d=data).split()
    whole = invoke(*words).stdout_bytes
    room = len(whole) // 3
    limit = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({room}, {room})); "
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", limit + COMMAND, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    part = (tmp_path / "out").read_bytes()
    assert done.returncode == 1
    assert re.fullmatch(rb"Error: .*File too large.*\n", done.stderr)
    assert part[: room // 2] == whole[: room // 2]  # seconds come last


COMMAND = "import sys; sys.argv[0] = 'aucmax'; from aucmax.cli.main import app; app()"


def test_score_ignores_labels(model, tmp_path):
    """Rows to be scored may have no label, or an unknown one."""
    lines = table(20)
    lines[3] = lines[3].rsplit(",", 1)[0] + ","
    lines[7] = lines[7].rsplit(",", 1)[0] + ",perhaps"
    data = write_table(tmp_path / "new.csv", lines)
    result = invoke("score", model, data)
    assert result.exit_code == 0, result.output
    assert len(fields(result.stdout)) == 20


def test_neither_data_nor_model_are_overwritten(model, data):
    for output in (model, data):
        before = output.read_bytes()
        result = invoke("score", model, data, "-o", output)
        assert result.exit_code == 1
        assert f"Refusing to overwrite input file {output}" in result.stderr
        assert output.read_bytes() == before


@pytest.mark.parametrize("name", ["d.csv", "missing/../d.csv"])
def test_no_command_overwrites_the_file_behind_standard_input(
    name, model, data, tmp_path, monkeypatch
):
    path, fstat = tmp_path / "d.csv", os.fstat
    path.write_bytes(data.read_bytes())
    monkeypatch.setattr(os, "fstat", lambda n: os.stat(path) if n == 0 else fstat(n))
    for command in (
        ("score", model, "-", "-o"),
        ("score", model, "-", "--top", 5, "-o"),
        ("evaluate", model, "-", "--report"),
        ("train", "-", "--label", "clicked", "--algorithm", "SPAM", "-o"),
    ):
        result = invoke(*command, f"{tmp_path}/{name}", input=path.read_text())
        assert result.exit_code == 1
        assert "Refusing to overwrite input file" in result.stderr, result.stderr
    assert path.read_bytes() == data.read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="nobody can tell what a pipe has")
def test_pipe_is_answered_line_by_line(model, data, expected):
    """Each line is answered while the pipe is open, even if it arrives in two parts."""
    process = subprocess.Popen(
        aucmax_command("score", model, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(f"{HEADER}\n{LINES[0]}\n".encode())
    process.stdin.flush()
    assert process.stdout.readline() == f"{HEADER},score\n".encode()
    answer = f"{LINES[0]},{expected[0]!r}\n".encode()
    assert b"".join(process.stdout.readline() for _ in answer.splitlines()) == answer
    for line, score in zip(LINES[1:8], expected[1:8], strict=True):
        process.stdin.write(line[:5].encode())
        process.stdin.flush()
        time.sleep(0.01)
        process.stdin.write(f"{line[5:]}\n".encode())
        process.stdin.flush()
        answer = f"{line},{score!r}\n".encode()
        lines = [process.stdout.readline() for _ in answer.splitlines()]
        assert b"".join(lines) == answer
    rest, complaint = process.communicate("\n".join(LINES[8:]).encode())
    assert process.returncode == 0
    assert complaint == b""
    assert rest.decode().endswith(f"{LINES[-1]},{expected[-1]!r}\n")


@pytest.mark.skipif(os.name != "posix", reason="nobody can tell what a pipe has")
def test_single_line_is_answered_at_once(model):
    process = subprocess.Popen(
        aucmax_command("score", model, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )

    def answered(text):
        start = time.perf_counter()
        process.stdin.write(f"{text}\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        return time.perf_counter() - start

    line = "30,York,20000.0,no"
    answered(f"{HEADER}\n{line}")
    process.stdout.readline()  # the answer to the line
    times = sorted(answered(line) for _ in range(15))
    process.communicate()
    assert times[7] < 0.1  # the median, on a machine that may be busy


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_interchanged_model_and_data(command, model, data):
    result = invoke(command, data, model)
    assert result.exit_code == 1
    assert f"The model comes first: aucmax {command} {model} {data}" in result.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(closed, model, data, tmp_path):
    def shell(*arguments):
        command = shlex.join(aucmax_command(*arguments))
        return subprocess.run(
            f"{command} {closed}",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )

    output = tmp_path / "scores.csv"
    found = shell("score", model, data, "-o", output)
    assert (found.returncode, found.stderr) == (0, "")
    assert output.exists()
    assert shell("info", model).returncode == 0
    for source in (data, "-"):
        found = shell("score", model, source)
        assert "Traceback" not in found.stderr
        if " >&-" in f" {closed}" or ("<&-" in closed and source == "-"):
            assert found.returncode == 1
            assert "2>&-" in closed or " is closed" in found.stderr


def test_missing_zero_for_new_data(model, tmp_path):
    data = write_table(tmp_path / "holes.csv", [",York,3,no", "0,York,3,no"])
    assert invoke("score", model, data).exit_code == 1
    result = invoke("score", model, data, data, "--input", "missing=zero")
    assert result.exit_code == 0, result.stderr
    assert len({row["score"] for row in fields(result.stdout)}) == 1
