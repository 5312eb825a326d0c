"""Scoring of files and streams, batch by batch, in the order of the data.

A model that was trained from files stores how to read such files.
"""

import bz2
import csv
import errno
import gzip
import json
import lzma
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.background import prefetch
from aucmax.io.batch import BadLine, Batch, Source
from aucmax.io.collect import widened
from aucmax.io.malformed_lines import BadLines
from aucmax.io.open_data import guess_format, named_set, open_data, reopen
from aucmax.io.svmlight import SvmlightSource
from aucmax.io.text import Text
from aucmax.storage.atomic import refuse_overwriting, replacing
from aucmax.storage.model_file import is_model
from aucmax.storage.standard_output import whole_output
from aucmax.tables.labels import Task
from aucmax.workflows.models import load_with_recipe

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # disk full, file size, quota

Scores = NDArray[np.float64]


class Model(NamedTuple):
    """The estimator of a model file, and how it reads data."""

    estimator: Any
    recipe: dict[str, Any] | None  # None if the model was trained in Python

    @classmethod
    def load(cls, path: str | Path) -> "Model":
        """Read a model file."""
        return cls(*load_with_recipe(path))

    @classmethod
    def load_for(cls, path: Path, data: Sequence[str], command: str) -> "Model":
        """Read a model file; raise an error if model and data are interchanged."""
        if data and is_model(data[0]) and not is_model(path):
            raise ValueError(
                f"{path} is not a model file, but {data[0]} is. The model comes first: "
                f"aucmax {command} {data[0]} {path}"
            )
        return cls.load(path)

    @property
    def width(self) -> int:
        """Return the number of features."""
        return int(self.estimator.row_width)

    def task(self) -> Task:
        """Return which labels are positive."""
        if self.recipe is not None:
            return Task.from_json(self.recipe["task"])
        negative, positive = self.estimator.classes_.tolist()
        if isinstance(positive, bool):
            return Task()
        return Task.of([positive], [negative])

    def names(self, features: Sequence[int] | None = None) -> list[str]:
        """Return names of features (default: all), or their numbers as text."""
        if features is None:
            features = range(self.width)
        if hasattr(self.estimator, "feature_names_in_"):
            known = self.estimator.feature_names_in_
            return [str(known[index]) for index in features]
        reading = {"format": None} if self.recipe is None else self.recipe["input"]
        if reading["format"] not in (None, "svmlight"):
            from aucmax.tables.schema import Schema

            return Schema.from_json(reading).feature_names(features)
        one_based = reading["format"] == "svmlight" and not reading["zero_based"]
        return [str(index + one_based) for index in features]

    def open(
        self,
        data: Sequence[str],
        changes: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Source:
        """Return a reader that builds the features this model was trained on.

        ``changes`` and ``options`` are as for :func:`aucmax.io.open_data.reopen`.
        """
        options["n_features"] = self.width
        if self.recipe is not None:
            return reopen(data, self.recipe["input"], changes=changes, **options)
        changes = dict(changes or {})
        has_columns = bool(options.pop("extra", ()))
        has_columns |= options.pop("weight", None) not in (None, "none")
        if named_set(data) and not has_columns:
            return open_data(data, **changes)
        text = Text(data)
        known = guess_format(text)
        if known != "svmlight" or has_columns:
            raise ValueError(
                "The model was trained in Python and does not store how columns become "
                f"features: it cannot read {known} data. Train it with aucmax train, "
                "or score in Python: aucmax.load(MODEL).decision_function(X)."
            )
        options["missing"] = changes.pop("missing", "error")
        if changes:
            raise ValueError(
                f"{', '.join(sorted(changes))}: svmlight data only accept the option "
                "'missing'."
            )
        return SvmlightSource(text, **options)

    def score(self, X: Any) -> Scores:
        """Return the score of each row; features unknown to the model are ignored."""
        if X.shape[1] > self.width:
            warnings.warn(
                f"The model has {self.width:,} features: further features of the data "
                "are ignored.",
                DataWarning,
                stacklevel=2,
            )
            X = X[:, : self.width]
        X = widened(X, self.width)
        scores: Scores = self.estimator.decision_function(X)
        return scores


def scored(
    model: Model, source: Source, watch: Callable[[int, int], None]
) -> Iterator[tuple[Batch, Scores]]:
    """Yield batches of the data with the scores of their rows.

    ``watch`` is called with the numbers of bytes and rows done.
    """
    rows = 0
    for batch in prefetch(source.batches()):
        n = batch.rows.shape[0]
        scores = model.score(batch.rows) if n else np.empty(0)
        rows += n
        yield batch, scores
        watch(batch.done, rows)


class _ScoreWriter:
    """Writes one score per line; the base class of writers that copy rows."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, batch: Batch, scores: Scores) -> None:
        """Write the rows of a batch, and its malformed lines without a score."""
        for rows, line in _runs(batch):
            texts = map(repr, scores[rows].tolist())
            self._file.write("".join(f"{text}\n" for text in texts).encode())
            if line is not None:
                self._file.write(b"\n")

    def close(self) -> None:
        """Write the end of the output."""


def write_scores(
    model: Model,
    data: Sequence[str],
    output: Path | None,
    bad: BadLines,
    watch: Callable[[Sequence[str]], Any],
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Score data and write the scores to a file or standard output.

    Return the number of rows. The file appears when it is complete. ``watch`` takes the
    files and returns a context manager that gives ``watch`` of :func:`scored`;
    ``changes`` are as for :meth:`Model.open`.
    """
    # prompt: a program that writes to the pipe may wait for the scores.
    reopened = partial(model.open, labelled=False, changes=changes)
    source = reopened(data, keep_text=True, prompt=True)
    known, rows = source.recipe()["format"], 0
    to_parquet = output is not None and output.suffix in (".parquet", ".pq")
    if to_parquet and known != "parquet":
        raise ValueError(f"{output}: only Parquet data can be written as Parquet.")
    if output is not None:
        refuse_overwriting(output, source.files)
    with _opened(output) as file, watch(source.files) as meter:
        writer: _ScoreWriter
        if known == "csv":
            writer = _CsvWriter(file, source, reopened)
        elif known == "parquet":
            writer = _ArrowWriter(file, to_parquet)
        else:
            writer = (_JsonWriter if known == "jsonl" else _ScoreWriter)(file)
        for batch, scores in scored(model, source, meter):
            bad.take(batch.malformed)
            if not bad.in_place:
                batch = batch._replace(malformed=[])
            writer.write(batch, scores)
            if output is None:
                file.flush()
            rows += scores.size
        writer.close()
    return rows


def _runs(batch: Batch) -> Iterator[tuple[slice, BadLine | None]]:
    """Yield runs of rows, each with the malformed line after it, None for the last."""
    first = 0
    malformed = batch.malformed
    places = np.searchsorted(batch.line_numbers, [line.line for line in malformed])
    for place, line in zip(places.tolist(), malformed, strict=True):
        yield slice(first, place), line
        first = place
    yield slice(first, None), None


class _CsvWriter(_ScoreWriter):
    """Copies the lines of CSV data and appends a field."""

    def __init__(
        self, file: BinaryIO, source: Any, reopened: Callable[[list[str]], Any]
    ) -> None:
        super().__init__(file)
        self._source, self._reopened = source, reopened
        self._names: bytes | None = source.header()
        self._end: bytes | None = None  # of a line, as in the input
        self._seen: str | None = None  # file of the last rows

    def write(self, batch: Batch, scores: Scores) -> None:
        data, starts, stops = batch.text
        if not scores.size and not batch.malformed:
            return
        if self._end is None:
            two = data[stops[0] : stops[0] + 2] if scores.size else b""
            self._begin(b"\r\n" if two == b"\r\n" else b"\n")
        elif batch.file != self._seen:
            self._compare(batch.file)
        self._seen = batch.file
        delimiter, end = self._source.delimiter.encode(), self._end or b"\n"
        bounds = starts.tolist(), stops.tolist(), scores.tolist()
        lines = [
            b"%b%b%b%b" % (data[start:stop], delimiter, repr(score).encode(), end)
            for start, stop, score in zip(*bounds, strict=True)
        ]
        for rows, line in _runs(batch):
            self._file.write(b"".join(lines[rows]))
            if line is not None:
                self._file.write(line.text + delimiter + end)

    def close(self) -> None:
        if self._end is None:
            self._begin(b"\n")

    def _begin(self, end: bytes) -> None:
        self._end = end
        if self._names is not None:
            delimiter = self._source.delimiter
            text = self._names.decode(errors="replace")
            names = next(csv.reader([text], delimiter=delimiter), [])
            more = f"{delimiter}{free_name(names)}".encode()
            self._file.write(self._names + more + end)

    def _compare(self, name: str) -> None:
        """Raise an error if a file has another header than the first one."""
        other = self._reopened([name])
        if (other.header(), other.delimiter) != (self._names, self._source.delimiter):
            raise ValueError(
                f"{name} has other columns than {self._source.files[0]}, or another "
                "order of columns: score the files one by one."
            )


class _JsonWriter(_ScoreWriter):
    """Copies the objects of JSON lines and appends a field."""

    def write(self, batch: Batch, scores: Scores) -> None:
        data, starts, stops = batch.text
        bounds = starts.tolist(), stops.tolist(), scores.tolist()
        lines = [
            _with_score(data[start:stop], score)
            for start, stop, score in zip(*bounds, strict=True)
        ]
        for rows, line in _runs(batch):
            self._file.write(b"".join(lines[rows]))
            if line is not None:
                self._file.write(line.text + b"\n")


def _with_score(text: bytes, score: float) -> bytes:
    inner = text[:-1].rstrip()
    name = free_name(json.loads(text)) if b'"score' in text else "score"
    comma = b"" if inner == b"{" else b", "
    return b'%b%b"%b": %b}\n' % (inner, comma, name.encode(), repr(score).encode())


class _ArrowWriter(_ScoreWriter):
    """Appends a column to Arrow batches, and writes Parquet or CSV."""

    def __init__(self, file: BinaryIO, to_parquet: bool) -> None:
        super().__init__(file)
        self._to_parquet = to_parquet
        self._sink: Any = None

    def write(self, batch: Batch, scores: Scores) -> None:
        import pyarrow as pa

        batches, null = [], []
        for rows, line in _runs(batch):
            start, stop, _ = rows.indices(scores.size)
            batches.append(batch.text.slice(start, stop - start))
            null += [False] * (stop - start)
            if line is not None:
                batches.append(line.row)
                null.append(True)
        mask = np.array(null, bool)
        column = np.zeros(mask.size)
        column[~mask] = scores
        table = pa.Table.from_batches(batches, batch.text.schema)
        name = free_name(table.schema.names)
        table = table.append_column(name, pa.array(column, mask=mask))
        table = table.combine_chunks()  # one row group per batch
        if self._sink is None:
            self._sink = self._begin(table.schema)
        self._sink.write(table)

    def _begin(self, schema: Any) -> Any:
        if self._to_parquet:
            from pyarrow.parquet import ParquetWriter

            return ParquetWriter(self._file, schema)
        from pyarrow.csv import CSVWriter, WriteOptions

        return CSVWriter(self._file, schema, write_options=WriteOptions())

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()


def free_name(names: Collection[str]) -> str:
    """Return "score", or "score_2" and so on if that name is taken."""
    name, number = "score", 1
    while name in names:
        number += 1
        name = f"score_{number}"
    return name


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Open a file that appears when it is complete, compressed by its name."""
    try:
        if output is None:
            if sys.stdout is None:
                raise OSError("Standard output is closed: name a file with -o.")
            with whole_output():
                yield sys.stdout.buffer
        else:
            with replacing(output) as file, _compressed(file, output.suffix) as packed:
                yield packed
    except OSError as error:
        if error.errno in _FULL:  # name the file
            name = "standard output" if output is None else str(output)
            raise OSError(error.errno, error.strerror, name) from error
        raise


def _compressed(file: BinaryIO, suffix: str) -> AbstractContextManager[Any]:
    if suffix == ".gz":
        # Neither time nor name inside: the same scores give the same file.
        return gzip.GzipFile("", "wb", 6, file, mtime=0)
    if suffix == ".bz2":
        return bz2.BZ2File(file, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb", preset=1)
    if suffix != ".zst":
        return nullcontext(file)
    import zstandard

    writer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    return cast("AbstractContextManager[Any]", writer)
