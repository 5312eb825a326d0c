"""Which reader a file gets."""

import gzip
import os
from threading import Thread

import pytest

from aucmax.io.open_data import guess_format, open_data, reopen
from aucmax.io.text import Text

SVMLIGHT = "# comment\n\n-1 \n+1 1:2 3:4.5\n-1 qid:7 2:1 # here\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.svm", "", "svmlight"),
        ("a.libsvm.gz", "", "svmlight"),
        ("a.CSV", "", "csv"),
        ("a.tsv.xz", "", "csv"),
        ("a.parquet", "", "parquet"),
        ("a.txt", SVMLIGHT, "svmlight"),
        ("a", SVMLIGHT, "svmlight"),
        ("a.data", "1,2\n3,4\n", "csv"),
        ("a.data", "time value\n10:30 1:2\n", "csv"),
        ("a.data", "y;x\n1;2\n", "csv"),
        ("a.data", "a\tb\n1\t2:3\n", "csv"),
        ("a.data", "1\n2\n", "csv"),
        ("a.data", "", "csv"),
        ("a.data", "PAR1\0\0", "parquet"),
    ],
)
def test_the_format_by_name_or_by_looking(tmp_path, name, content, expected):
    path = tmp_path / name
    path.write_text(content)
    assert guess_format(Text(path)) == expected


def test_packed_files_and_folders_are_looked_into(tmp_path):
    (tmp_path / "part-1.gz").write_bytes(gzip.compress(SVMLIGHT.encode()))
    (tmp_path / ".hidden.csv").write_text("")
    assert guess_format(Text(str(tmp_path / "part-1.gz"))) == "svmlight"
    assert guess_format(Text(tmp_path)) == "svmlight"
    assert guess_format(Text(str(tmp_path / "part-*"))) == "svmlight"


def test_named_pipes_are_looked_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = Thread(target=path.write_text, args=(SVMLIGHT * 10_000,))
    writer.start()
    rows = sum(len(chunk.labels) for chunk in open_data([str(path)]).batches())
    writer.join()
    assert rows == 30_000


def test_a_long_line_that_is_cut_off(tmp_path):
    path = tmp_path / "wide"
    wide = "1 " + " ".join(f"{j}:0.5" for j in range(1, 9000))
    path.write_text(f"{wide}\n{wide}\n")
    assert guess_format(Text(path)) == "svmlight"


def test_options_that_a_format_does_not_have(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(SVMLIGHT)
    with pytest.raises(
        ValueError, match=r"label: unknown option for svmlight.*zero_based"
    ):
        open_data([str(path)], label="y")
    with pytest.raises(ValueError, match="svmlight data have no column 't'"):
        open_data([str(path)], extra=["t"], drop=["t"])
    with pytest.raises(ValueError, match="one of svmlight, csv, jsonl, parquet, not"):
        open_data([str(path)], format="excel")
    with pytest.raises(ValueError, match="give a file"):
        open_data([])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        open_data([str(tmp_path / "nowhere")])


def test_a_recipe_reads_other_files_the_same_way(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 0:1 5:2\n")
    recipe = open_data([str(path)], zero_based=True, dtype="float32").recipe()
    other = tmp_path / "b.svm"
    other.write_text("1 0:3 1:4 7:5\n")
    (chunk,) = reopen([str(other)], recipe, n_features=6).batches()
    assert chunk.rows.dtype == "float32"
    assert chunk.rows.toarray().tolist() == [[3, 4, 0, 0, 0, 0]]
    with pytest.raises(ValueError, match="no column 'town'"):
        reopen([str(other)], recipe, extra=["town"])


def test_a_table_may_change_its_format(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "a.csv"
    path.write_text("y,a,b\n1,2,red\n0,3,blue\n")
    recipe = open_data([str(path)], label="y", encode="onehot").recipe()
    other = tmp_path / "b.parquet"
    parquet.write_table(pa.table({"b": ["blue", "green"], "a": [5, 6]}), other)
    (chunk,) = reopen([str(other)], recipe).batches()
    assert chunk.labels is None
    assert chunk.rows.toarray().tolist() == [[5, 1, 0], [6, 0, 0]]


def test_files_of_several_formats_are_told_apart(tmp_path):
    rows, table = tmp_path / "a.svm", tmp_path / "b.csv.gz"
    rows.write_text("1 1:1\n-1 2:2\n")
    table.write_bytes(gzip.compress(b"x,y\n1,0\n2,1\n"))
    for paths in ([tmp_path], [rows, table], [table, rows], [tmp_path / "*"]):
        with pytest.raises(ValueError, match=r"several formats.*(a\.svm|b\.csv\.gz)"):
            open_data([str(path) for path in paths])
    of_rows = open_data([str(rows)]).recipe()
    of_table = open_data([str(table)], label="y").recipe()
    with pytest.raises(ValueError, match=r"b\.csv\.gz has csv data.*on svmlight data"):
        reopen([str(rows), str(table)], of_rows)
    with pytest.raises(ValueError, match=r"a\.svm has svmlight data.*on csv data"):
        reopen([str(tmp_path)], of_table)
    # Names are nothing but names for who has said what is in the files.
    odd = tmp_path / "c.csv"
    odd.write_text(rows.read_text())
    assert list(reopen([str(odd), str(rows)], of_rows).batches())
    assert list(open_data([str(odd), str(rows)], format="svmlight").batches())


@pytest.mark.parametrize("name", ["a.xlsx", "a.XLS", "a.zip", "a"])
def test_a_spreadsheet_is_named_and_what_is_read(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04\x14\0\x06\0\n1,2\n")
    with pytest.raises(
        ValueError, match=r"not supported\. Export it as CSV or Parquet"
    ):
        open_data([str(path)])
