"""Writers that copy rows and append columns: score, probability, reasons."""

import bz2
import csv
import errno
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from aucmax.io.batch import BadLine, Batch
from aucmax.io.csv_rows import fields_of
from aucmax.storage.atomic import replacing
from aucmax.storage.standard_output import whole_output

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # disk full, file size, quota

Columns = Sequence[NDArray[Any]]  # float64, or str objects


class ScoreWriter:
    """Writes the values of a row per line; the base class of writers that copy rows."""

    def __init__(self, file: BinaryIO, names: Sequence[str]) -> None:
        self._file, self._names = file, names

    def write(self, batch: Batch, columns: Columns) -> None:
        """Write the rows of a batch, and its malformed lines without values."""
        texts = [_texts(column) for column in columns]
        lines = ["\t".join(values) for values in zip(*texts, strict=True)]
        for rows, line in _runs(batch):
            self._file.write("".join(f"{text}\n" for text in lines[rows]).encode())
            if line is not None:
                self._file.write(b"\n")

    def check(self, batch: Batch) -> None:
        """Raise an error if the rows cannot be written after those before."""

    def close(self) -> None:
        """Write the end of the output."""


def _texts(column: NDArray[Any]) -> list[str]:
    values = column.tolist()
    return values if column.dtype.kind == "O" else [repr(value) for value in values]


def _runs(batch: Batch) -> Iterator[tuple[slice, BadLine | None]]:
    """Yield runs of rows, each with the malformed line after it, None for the last."""
    first = 0
    malformed = batch.malformed
    places = np.searchsorted(batch.line_numbers, [line.line for line in malformed])
    for place, line in zip(places.tolist(), malformed, strict=True):
        yield slice(first, place), line
        first = place
    yield slice(first, None), None


class CsvWriter(ScoreWriter):
    """Copies the lines of CSV data and appends fields."""

    def __init__(
        self,
        file: BinaryIO,
        names: Sequence[str],
        source: Any,
        reopened: Callable[[list[str]], Any],
    ) -> None:
        super().__init__(file, names)
        self._source, self._reopened = source, reopened
        self._header: bytes | None = source.header()
        self._end: bytes | None = None  # of a line, as in the input
        self._seen: str | None = None  # file of the last rows

    def check(self, batch: Batch) -> None:
        """Raise an error if the file of a batch has another header than the first."""
        if self._seen not in (None, batch.file):
            self._compare(batch.file)
        self._seen = batch.file

    def write(self, batch: Batch, columns: Columns) -> None:
        """Write the lines of the rows, with more fields."""
        data, starts, stops = batch.text
        if not starts.size and not batch.malformed:
            return
        if self._end is None:
            two = data[stops[0] : stops[0] + 2] if starts.size else b""
            self._begin(b"\r\n" if two == b"\r\n" else b"\n")
        delimiter, end = self._source.delimiter.encode(), self._end or b"\n"
        fields = [[text.encode() for text in self._fields(c)] for c in columns]
        bounds = zip(starts.tolist(), stops.tolist(), strict=True)
        lines = [
            b"%b%b%b%b" % (data[start:stop], delimiter, delimiter.join(more), end)
            for (start, stop), *more in zip(bounds, *fields, strict=True)
        ]
        nothing = delimiter * len(columns)
        for rows, line in _runs(batch):
            self._file.write(b"".join(lines[rows]))
            if line is not None:
                self._file.write(line.text + nothing + end)

    def close(self) -> None:
        """Write the header if there was no row."""
        if self._end is None:
            self._begin(b"\n")

    def _fields(self, column: NDArray[Any]) -> list[str]:
        """Return the values as fields, quoted if necessary."""
        if column.dtype.kind != "O":
            return _texts(column)
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._source.delimiter, lineterminator="\n")
        writer.writerows([value] for value in column.tolist())
        return text.getvalue().splitlines()

    def _begin(self, end: bytes) -> None:
        self._end = end
        if self._header is not None:
            delimiter = self._source.delimiter
            text = self._header.decode(errors="replace")
            names = fields_of(text, delimiter)
            more = "".join(f"{delimiter}{free_name(names, n)}" for n in self._names)
            self._file.write(self._header + more.encode() + end)

    def _compare(self, name: str) -> None:
        """Raise an error if a file has another header than the first one."""
        other = self._reopened([name])
        if (other.header(), other.delimiter) != (self._header, self._source.delimiter):
            raise ValueError(
                f"{name} has other columns than {self._source.files[0]}, or another "
                "order of columns: score the files one by one."
            )


class JsonWriter(ScoreWriter):
    """Copies the objects of JSON lines and appends fields."""

    def write(self, batch: Batch, columns: Columns) -> None:
        """Write the objects of the rows, with more fields."""
        data, starts, stops = batch.text
        bounds = zip(starts.tolist(), stops.tolist(), strict=True)
        values = zip(bounds, *(column.tolist() for column in columns), strict=True)
        lines = [
            self._extended(data[start:stop], more) for (start, stop), *more in values
        ]
        for rows, line in _runs(batch):
            self._file.write(b"".join(lines[rows]))
            if line is not None:
                self._file.write(line.text + b"\n")

    def _extended(self, text: bytes, values: list[Any]) -> bytes:
        inner = text[:-1].rstrip()
        taken: Any = ()
        if any(f'"{name}'.encode() in text for name in self._names):
            taken = json.loads(text)
        fields = [
            f'"{free_name(taken, name)}": {_json(value)}'
            for name, value in zip(self._names, values, strict=True)
        ]
        comma = b"" if inner == b"{" else b", "
        return b"%b%b%b}\n" % (inner, comma, ", ".join(fields).encode())


def _json(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


class ArrowWriter(ScoreWriter):
    """Appends columns to Arrow batches, and writes Parquet or CSV."""

    def __init__(self, file: BinaryIO, names: Sequence[str], to_parquet: bool) -> None:
        super().__init__(file, names)
        self._to_parquet = to_parquet
        self._sink: Any = None

    def write(self, batch: Batch, columns: Columns) -> None:
        """Write the rows, with more columns."""
        import pyarrow as pa

        size = batch.text.num_rows
        batches, null = [], []
        for rows, line in _runs(batch):
            start, stop, _ = rows.indices(size)
            batches.append(batch.text.slice(start, stop - start))
            null += [False] * (stop - start)
            if line is not None:
                batches.append(line.row)
                null.append(True)
        mask = np.array(null, bool)
        table = pa.Table.from_batches(batches, batch.text.schema)
        for name, values in zip(self._names, columns, strict=True):
            column = np.zeros(mask.size, values.dtype)
            column[~mask] = values
            title = free_name(table.schema.names, name)
            table = table.append_column(title, pa.array(column, mask=mask))
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
        """Write the end of the file."""
        if self._sink is not None:
            self._sink.close()


def free_name(names: Collection[str], wanted: str = "score") -> str:
    """Return a name such as "score", or "score_2" and so on if that is taken."""
    name, number = wanted, 1
    while name in names:
        number += 1
        name = f"{wanted}_{number}"
    return name


@contextmanager
def opened(output: Path | None) -> Iterator[BinaryIO]:
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
