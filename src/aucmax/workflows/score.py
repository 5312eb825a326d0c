"""Scores from files and streams: chunk by chunk, in the order of the data.

A model that was trained from files knows how to read more of them; its recipe says so.
"""

import csv
import errno
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from aucmax.core.validation import DataWarning
from aucmax.io.background import prefetch
from aucmax.io.chunk import BadLine, Chunk, Source
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

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # disk, file, share of a disk
_PACKED = (".gz", ".bz2", ".xz", ".zst")

Scores = NDArray[np.float64]


class Model(NamedTuple):
    """What a model file holds."""

    estimator: Any
    recipe: dict[str, Any] | None  # None if the model was trained in Python

    @classmethod
    def load(cls, path: str | Path) -> "Model":
        """Read a model file."""
        return cls(*load_with_recipe(path))

    @classmethod
    def load_for(cls, path: Path, data: Sequence[str], command: str) -> "Model":
        """Read a model file; say so if it has changed places with the data."""
        if data and is_model(data[0]) and not is_model(path):
            raise ValueError(
                f"{path} is not a model file, but {data[0]} is one. The model comes "
                f"first: aucmax {command} {data[0]} {path}"
            )
        return cls.load(path)

    @property
    def width(self) -> int:
        """Return the number of features."""
        return int(self.estimator.n_features_in_)

    def task(self) -> Task:
        """Return which labels are positive."""
        if self.recipe is not None:
            return Task.from_json(self.recipe["task"])
        negative, positive = self.estimator.classes_.tolist()
        if isinstance(positive, bool):
            return Task()
        return Task.of([positive], [negative])

    def names(self, features: Sequence[int] | None = None) -> list[str]:
        """Return the names of some features (default: all), or their numbers."""
        if features is None:
            features = range(self.width)
        if hasattr(self.estimator, "feature_names_in_"):
            known = self.estimator.feature_names_in_
            return [str(known[index]) for index in features]
        reading = {"format": None} if self.recipe is None else self.recipe["input"]
        if reading["format"] in ("csv", "parquet"):
            from aucmax.tables.schema import Schema

            return Schema.from_json(reading).feature_names(features)
        one_based = reading["format"] == "svmlight" and not reading["zero_based"]
        return [str(index + one_based) for index in features]

    def open(
        self,
        data: Sequence[str],
        *,
        keep_text: bool = False,
        extra: Sequence[str] = (),
        labelled: bool = True,
        weight: str | None = None,
        prompt: bool = False,
        changes: Mapping[str, Any] | None = None,
    ) -> Source:
        """Return a reader that makes the features this model was trained on.

        ``changes`` are as for :func:`aucmax.io.open_data.reopen`.
        """
        if self.recipe is not None:
            return reopen(
                data,
                self.recipe["input"],
                keep_text=keep_text,
                extra=extra,
                n_features=self.width,
                labelled=labelled,
                weight=weight,
                prompt=prompt,
                changes=changes,
            )
        changes = dict(changes or {})
        columns = bool(extra) or weight not in (None, "none")
        if named_set(data) and not columns:
            return open_data(data, **changes)
        text = Text(data)
        known = guess_format(text)
        if known != "svmlight" or columns:
            raise ValueError(
                "The model was trained in Python, and does not say how columns become "
                f"features: it cannot read {known} data. Train it with aucmax train, "
                "or score in Python: aucmax.load(MODEL).decision_function(X)."
            )
        missing = changes.pop("missing", "error")
        if changes:
            raise ValueError(
                f"{', '.join(sorted(changes))}: of svmlight data one may say missing."
            )
        return SvmlightSource(
            text,
            n_features=self.width,
            missing=missing,
            labelled=labelled,
            prompt=prompt,
        )

    def score(self, X: Any) -> Scores:
        """Return the score of each row; features it has never seen do not matter."""
        if X.shape[1] > self.width:
            warnings.warn(
                f"The data have features beyond the {self.width:,} that the model "
                "knows: these do not count.",
                DataWarning,
                stacklevel=2,
            )
            X = X[:, : self.width]
        X = widened(X, self.width)
        scores: Scores = self.estimator.decision_function(X)
        return scores


def scored(
    model: Model, source: Source, watch: Callable[[int, int], None]
) -> Iterator[tuple[Chunk, Scores]]:
    """Yield chunks of the data and the scores of their rows.

    ``watch`` is told the bytes and the rows that are done.
    """
    rows = 0
    for chunk in prefetch(source.chunks()):
        n = chunk.X.shape[0]
        scores = model.score(chunk.X) if n else np.empty(0)
        rows += n
        yield chunk, scores
        watch(chunk.done, rows)


class Writer(Protocol):
    """Writes scores, with the rows they are of or without."""

    def write(self, chunk: Chunk, scores: Scores) -> None:
        """Write some rows, and in their places, without a score, its bad lines."""

    def close(self) -> None:
        """Write what is left."""


def write_scores(
    model: Model,
    data: Sequence[str],
    output: Path | None,
    bad: BadLines,
    watch: Callable[[Sequence[str]], Any],
    changes: Mapping[str, Any] | None = None,
) -> int:
    """Score data and write them to ``output``, or to standard output; return the rows.

    The file appears when it is complete. ``watch`` is :func:`aucmax.cli.screen.reading`
    or something like it; ``changes`` are as for :meth:`Model.open`.
    """
    # Who feeds a pipe line by line may be waiting for the scores.
    reopened = partial(model.open, labelled=False, changes=changes)
    source = reopened(data, keep_text=True, prompt=True)
    if output is not None:
        refuse_overwriting(output, source.files)
    rows = 0
    with _opened(output) as file, watch(source.files) as meter:
        writer = _writer(reopened, source, output, file)
        for chunk, scores in scored(model, source, meter):
            bad.take(chunk.bad)
            writer.write(chunk if bad.in_place else chunk._replace(bad=[]), scores)
            if output is None:
                file.flush()
            rows += scores.size
        writer.close()
    return rows


def _writer(
    reopened: Callable[[Sequence[str]], Source],
    source: Source,
    output: Path | None,
    file: BinaryIO,
) -> Writer:
    known = source.recipe()["format"]
    to_parquet = output is not None and output.suffix in (".parquet", ".pq")
    if known == "parquet":
        return _Batches(file, to_parquet)
    if to_parquet:
        raise ValueError(f"{output}: only Parquet data can be written as Parquet.")
    if known == "csv":
        return _Table(file, source, lambda name: reopened([name]))
    return _Plain(file)


def _runs(chunk: Chunk) -> Iterator[tuple[slice, BadLine | None]]:
    """Yield stretches of rows, and the bad line that follows each; none the last."""
    first = 0
    places = np.searchsorted(chunk.line, [line.line for line in chunk.bad])
    for place, line in zip(places.tolist(), chunk.bad, strict=True):
        yield slice(first, place), line
        first = place
    yield slice(first, None), None


class _Plain:
    """A score a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, chunk: Chunk, scores: Scores) -> None:
        for some, line in _runs(chunk):
            texts = map(repr, scores[some].tolist())
            self._file.write("".join(f"{text}\n" for text in texts).encode())
            if line is not None:
                self._file.write(b"\n")

    def close(self) -> None:
        pass


class _Table:
    """The lines of the input as they are, with one field more."""

    def __init__(
        self, file: BinaryIO, source: Any, reopened: Callable[[str], Any]
    ) -> None:
        self._file = file
        self._source, self._reopened = source, reopened
        self._names: bytes | None = source.header()
        self._end: bytes | None = None  # of a line, as in the input
        self._seen: str | None = None  # the file that rows were last from

    def write(self, chunk: Chunk, scores: Scores) -> None:
        data, starts, stops = chunk.raw
        if not scores.size and not chunk.bad:
            return
        if self._end is None:
            two = data[stops[0] : stops[0] + 2] if scores.size else b""
            self._begin(b"\r\n" if two == b"\r\n" else b"\n")
        elif chunk.file != self._seen:
            self._compare(chunk.file)
        self._seen = chunk.file
        delimiter, end = self._source.delimiter.encode(), self._end or b"\n"
        bounds = starts.tolist(), stops.tolist(), scores.tolist()
        lines = [
            b"%b%b%b%b" % (data[start:stop], delimiter, repr(score).encode(), end)
            for start, stop, score in zip(*bounds, strict=True)
        ]
        for some, line in _runs(chunk):
            self._file.write(b"".join(lines[some]))
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
        """Raise an error if a file's lines do not go with the header above them."""
        other = self._reopened(name)
        if (other.header(), other.delimiter) != (self._names, self._source.delimiter):
            raise ValueError(
                f"{name} has other columns than {self._source.files[0]}, or in another "
                "order: score them one by one."
            )


class _Batches:
    """Arrow's batches with one column more, as Parquet or as CSV."""

    def __init__(self, file: BinaryIO, to_parquet: bool) -> None:
        self._file, self._to_parquet = file, to_parquet
        self._sink: Any = None

    def write(self, chunk: Chunk, scores: Scores) -> None:
        import pyarrow as pa

        rows, unknown = [], []
        for some, line in _runs(chunk):
            start, stop, _ = some.indices(scores.size)
            rows.append(chunk.raw.slice(start, stop - start))
            unknown.append(np.zeros(stop - start, bool))
            if line is not None:
                rows.append(line.row)
                unknown.append(np.ones(1, bool))
        empty = np.concatenate(unknown)
        column = np.zeros(empty.size)
        column[~empty] = scores
        table = pa.Table.from_batches(rows, chunk.raw.schema)
        name = free_name(table.schema.names)
        table = table.append_column(name, pa.array(column, mask=empty))
        table = table.combine_chunks()  # a group of rows in the file, as they were read
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


def free_name(names: Sequence[str]) -> str:
    """Return "score", or "score_2" and so on if there is such a column."""
    name, number = "score", 1
    while name in names:
        number += 1
        name = f"score_{number}"
    return name


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Open a file that appears when it is complete, packed if its name says so."""
    try:
        if output is None:
            if sys.stdout is None:
                raise OSError("Standard output is closed: name a file with -o.")
            with whole_output():
                yield sys.stdout.buffer
        else:
            with replacing(output) as file, _packing(file, output.suffix) as packed:
                yield packed
    except OSError as error:
        if error.errno in _FULL:  # it is good to know which disk is full
            name = "standard output" if output is None else str(output)
            raise OSError(error.errno, error.strerror, name) from error
        raise


@contextmanager
def _packing(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    if suffix not in _PACKED:
        yield file
        return
    packed: Any
    if suffix == ".gz":
        import gzip

        # No time and no name inside: the same scores give the same file.
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0)
    elif suffix == ".bz2":
        import bz2

        packed = bz2.BZ2File(file, "wb")
    elif suffix == ".xz":
        import lzma

        packed = lzma.LZMAFile(file, "wb", preset=1)  # noqa: SIM115
    else:
        try:
            import zstandard
        except ImportError:
            raise ImportError(
                "Files .zst need a package: pip install 'aucmax[data]'"
            ) from None
        packed = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    with packed:
        yield packed
