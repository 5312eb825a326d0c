"""Reader of Parquet, Arrow and Feather files.

``Position.offset`` counts rows. A batch ends with a row group, or after a number of
rows that depends on the number of columns only: reading that resumes at the end of any
batch gives the same batches.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from aucmax.io.batch import Batch, Position
from aucmax.io.compression import STDIN, expand
from aucmax.io.table_source import TableSource
from aucmax.tables.cells import is_date
from aucmax.tables.column_kinds import PART, Sample, samples_of, spread_rows
from aucmax.tables.frames import check_numbers, check_type
from aucmax.tables.schema import Schema, find

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
_BATCH = 1 << 22  # bytes of a batch, at eight per value
_FEWEST, _MOST = 1 << 8, 1 << 16  # rows of a batch


class ArrowSource(TableSource):
    """Rows of Parquet, Arrow or Feather files.

    Parameters
    ----------
    paths : sequence of str
        Files, patterns, folders (of which files with these endings are read).
    keep_text : bool, default=False
        Whether ``Batch.text`` is a record batch of the rows with all their columns.
    **options
        As for :class:`~aucmax.io.csv_source.CsvSource`, except those of text.
    """

    _format = "parquet"

    def __init__(self, paths: Sequence[str], **options: Any) -> None:
        files = _files(paths)
        self._sizes = [os.path.getsize(file) for file in files]
        super().__init__(files, sum(self._sizes), **options)

    def _opened(self, file: str) -> "Batches":
        return Batches(file)

    def _sample(self) -> tuple[list[str], list[Sample], bool]:
        with self._opened(self.files[0]) as batches:
            arrow = batches.schema
            names = list(arrow.names)
            parts = (batch for batch, _ in batches.read(names, 0, PART))
            batch, more = spread_rows(parts, arrow)
        overrides = self._overrides
        aside = [overrides.label, overrides.weight]
        spared = [*overrides.drop, *overrides.categorical, *overrides.text]
        used = set(range(len(names))) if overrides.only is None else set()
        used |= {find(names, name) for name in overrides.only or ()}
        used |= {find(names, name) for name in aside if name is not None}
        used -= {find(names, name) for name in spared}
        for i in sorted(used) if self._recipe is None else ():
            check_type(self.files[0], names[i], arrow.types[i])
        for name in aside:
            if name is not None and is_date(arrow.types[find(names, name)]):
                raise ValueError(
                    f"{self.files[0]}: column {name!r} has dates, which cannot be "
                    "labels or weights: name another column, or convert it to "
                    "numbers or strings"
                )
        whole = not more and len(self.files) == 1
        return names, samples_of(batch, whole, self._na), True

    def _tables(self, schema: Schema, start: Position) -> Iterator[Batch]:
        for number in range(start.file, len(self.files)):
            file = self.files[number]
            done = sum(self._sizes[:number])
            at = start.offset if number == start.file else 0
            with self._opened(file) as batches:
                names = list(batches.schema.names)
                called, extra = self._locate(schema, names, file)
                needed = {*self._needed(schema, called), *extra.values()}
                check_numbers(file, batches.schema, schema)
                columns = [name for name in names if name in needed]
                read = names if self._keep_text else columns
                size = min(max(_BATCH // 8 // max(len(read), 1), _FEWEST), _MOST)
                for batch, part in batches.read(read, at, size):
                    lines = np.arange(at + 1, at + len(batch) + 1)
                    at += len(batch)
                    yield Batch(
                        rows=batch.select(columns),
                        labels=None,
                        weights=None,
                        line_numbers=lines,
                        malformed=[],
                        end=Position(number, at, at),
                        file=file,
                        done=done + int(part * self._sizes[number]),
                        text=batch,
                        extra={k: batch.column(name) for k, name in extra.items()},
                    )


def _files(paths: Sequence[str]) -> list[str]:
    files = []
    for path in [paths] if isinstance(paths, str) else paths:
        found = expand([path])
        if os.path.isdir(path):
            found = [name for name in found if name.endswith((*PARQUET, *ARROW))]
            if not found:
                raise FileNotFoundError(
                    f"{path}: no file in this folder ends in "
                    f"{', '.join((*PARQUET, *ARROW))}"
                )
        files += found
    if STDIN in files:
        raise ValueError(
            "Parquet and Arrow files are not read from standard input: give a file"
        )
    return files


class Batches:
    """Record batches of an open file."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._parquet: Any = None
        self._arrow: Any = None
        with open(file, "rb") as stream:
            magic = stream.read(6)
        try:
            if magic.startswith((b"PAR1", b"PARE")):
                self._parquet = self._handle = pq.ParquetFile(file, buffer_size=1 << 20)
                self.schema = self._parquet.schema_arrow
            elif magic == b"ARROW1" or magic.startswith(b"\xff\xff\xff\xff"):
                self._handle = pa.memory_map(file)
                is_file = magic == b"ARROW1"
                opened = pa.ipc.open_file if is_file else pa.ipc.open_stream
                self._arrow = opened(self._handle)
                self.schema = self._arrow.schema
            else:
                raise ValueError(
                    f"{file}: this is not a Parquet or Arrow file: it begins with "
                    f"{magic!r}"
                )
        except (pa.ArrowException, OSError) as error:
            raise self._broken(error) from error

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def _broken(self, error: Exception) -> OSError:
        return OSError(
            f"{self._file}: the file is damaged or not complete ({error}). Copy or "
            "write it again"
        )

    def read(
        self, columns: list[str], start: int, size: int
    ) -> Iterator[tuple[Any, float]]:
        """Yield batches of at most ``size`` rows, and the fraction of the file read."""
        left = start
        try:
            for n_rows, batches, done in self._groups(columns, size):
                if left >= n_rows:
                    left -= n_rows
                    continue
                for batch in batches:
                    if left >= len(batch):
                        left -= len(batch)
                        continue
                    yield batch.slice(left), done
                    left = 0
        except (pa.ArrowException, OSError) as error:
            raise self._broken(error) from error
        if left:
            raise ValueError(
                f"{self._file}: cannot resume at row {start}: there are only "
                f"{start - left}, so this is not the file that was read before"
            )

    def _groups(
        self, columns: list[str], size: int
    ) -> Iterator[tuple[int, Any, float]]:
        """Yield the size of each group, its batches, and the fraction read."""
        if self._parquet is not None:
            n_groups = self._parquet.num_row_groups
            for i in range(n_groups):
                rows = self._parquet.iter_batches(
                    size, row_groups=[i], columns=columns, use_threads=False
                )
                n_rows = self._parquet.metadata.row_group(i).num_rows
                yield n_rows, rows, (i + 1) / n_groups
        elif isinstance(self._arrow, pa.ipc.RecordBatchFileReader):
            n_batches = self._arrow.num_record_batches
            for i in range(n_batches):
                batch = self._arrow.get_batch(i)
                yield len(batch), _slices(batch, columns, size), (i + 1) / n_batches
        else:
            for batch in self._arrow:
                done = self._handle.tell() / max(self._handle.size(), 1)
                yield len(batch), _slices(batch, columns, size), done


def _slices(batch: Any, columns: list[str], size: int) -> Iterator[Any]:
    batch = batch.select(columns)
    for at in range(0, len(batch), size):
        yield batch.slice(at, size)
