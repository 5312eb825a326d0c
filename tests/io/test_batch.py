"""The contract of sources: every reader yields the same kind of batches."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from aucmax.io import text
from aucmax.io.batch import START, Position
from aucmax.io.csv_source import CsvSource
from aucmax.io.open_data import open_data
from aucmax.tables.labels import Task

N = 300
FORMS = ["csv", "jsonl", "parquet", "svm"]


@pytest.fixture(params=FORMS)
def source(request, tmp_path, monkeypatch):
    """Return a function that opens rows of which number 40 has an unknown label."""
    monkeypatch.setattr(text, "BLOCK", 1000)
    monkeypatch.setattr(CsvSource, "_block", 1000)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(N).round(3), "b": rng.random(N).round(3)})
    frame["y"] = np.where(np.arange(N) == 40, 7, np.arange(N) % 2)
    path = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    elif request.param == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif request.param == "parquet":
        frame.to_parquet(path, row_group_size=50)
    else:
        rows = [f"{y:.0f} 1:{a} 2:{b}\n" for a, b, y in frame.to_numpy()]
        path.write_text("".join(rows))
    options = {} if request.param == "svm" else {"label": "y"}
    return lambda **more: open_data([str(path)], **options, **more), frame


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def test_batches_are_consecutive_and_resume_anywhere(source):
    opened, frame = source
    batches = list(opened().batches())
    assert len(batches) > 3
    rows = np.vstack([dense(batch.rows) for batch in batches])
    np.testing.assert_array_equal(rows, frame[["a", "b"]])
    labels = np.concatenate([batch.labels for batch in batches])
    np.testing.assert_array_equal(labels, frame["y"])
    lines = np.concatenate([batch.line_numbers for batch in batches])
    np.testing.assert_array_equal(np.diff(lines), 1)
    for batch in batches:
        assert len(batch.line_numbers) == batch.rows.shape[0] == len(batch.labels)
        assert (batch.weights, batch.text, batch.extra) == (None, None, {})
        assert batch.malformed == []
    ends = [batch.end for batch in batches]
    assert [START, *ends] == sorted({START, *ends})
    assert batches[-1].done == opened().size
    for k, end in enumerate(ends):
        rest = list(opened().batches(Position(*json.loads(json.dumps(end)))))
        assert [batch.end for batch in rest] == ends[k + 1 :]
        for one, other in zip(rest, batches[k + 1 :], strict=True):
            np.testing.assert_array_equal(dense(one.rows), dense(other.rows))


def test_a_row_with_an_unknown_label_becomes_a_malformed_line(source):
    opened, frame = source
    task = Task.of([1], [0])
    read = list(opened(keep_text=True).batches())
    labelled = [batch.labelled(task) for batch in read]
    (bad,) = [line for batch in labelled for line in batch.malformed]
    (line,) = [b.line_numbers[list(b.labels).index(7)] for b in read if 7 in b.labels]
    assert (bad.line, bad.column) == (line, "label")
    assert "unknown label 7" in bad.problem
    labels = np.concatenate([batch.labels for batch in labelled])
    assert labels.dtype == bool
    np.testing.assert_array_equal(labels, frame["y"].drop(40) == 1)
    assert sum(batch.rows.shape[0] for batch in labelled) == N - 1
    assert all(batch.text is None for batch in labelled)
    assert all(batch.text is not None for batch in read)


def test_a_subset_keeps_what_belongs_to_its_rows(source):
    opened, _ = source
    batch = next(opened().batches())
    chosen = batch.line_numbers % 3 == 0
    some = batch.where(chosen)
    np.testing.assert_array_equal(dense(some.rows), dense(batch.rows)[chosen])
    np.testing.assert_array_equal(some.labels, batch.labels[chosen])
    np.testing.assert_array_equal(some.line_numbers, batch.line_numbers[chosen])
    assert (some.end, some.file, some.done) == (batch.end, batch.file, batch.done)
