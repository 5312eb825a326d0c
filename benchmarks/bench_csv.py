"""CSV to a matrix: our reader against pyarrow's, on a file of 100 MB.

Of pyarrow's, reading alone and reading with what it takes to have rows (its columns
copied into a matrix), in one thread and in as many as it likes; the whole file at once
and, as we do, by blocks of 4 MB. Ours alone, and in a thread that is ahead of its
consumer. Times are of the clock, best of some; ``cpu`` is of the processor, so that
other users of the machine do not count.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from aucmax.io.background import prefetch
from aucmax.io.csv_source import CsvSource
from bench import Row, best_of, main

SIZE = 100e6  # bytes
BLOCK = 1 << 22


def numbers(rng: np.random.Generator, n: int) -> pa.Table:
    X = rng.normal(size=(n, 20)).round(6)
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pa.table({**columns, "y": rng.integers(0, 2, n)})


def long_numbers(rng: np.random.Generator, n: int) -> pa.Table:
    columns = {f"x{j}": rng.random(n) for j in range(20)}  # 16 or 17 digits
    return pa.table({**columns, "y": rng.integers(0, 2, n)})


def integers(rng: np.random.Generator, n: int) -> pa.Table:
    columns = {f"x{j}": rng.integers(0, 256, n) for j in range(100)}
    return pa.table({**columns, "y": rng.integers(0, 2, n)})


def mixed(rng: np.random.Generator, n: int) -> pa.Table:
    columns = {f"x{j}": rng.normal(size=n).round(4) for j in range(8)}
    for j in range(8):
        values = [f"value {i}" for i in range(10 ** (j // 2 + 1))]
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(
            rng.integers(0, len(values), n).astype(np.int32), values
        ).cast(pa.string())
    return pa.table({**columns, "y": rng.integers(0, 2, n)})


def run(repeat: int) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for make in (numbers, long_numbers, integers, mixed):
            path = str(Path(folder) / f"{make.__name__}.csv")
            rng = np.random.default_rng(0)
            arrow_csv.write_csv(make(rng, 1000), path)
            n = int(1000 * SIZE / os.path.getsize(path))
            arrow_csv.write_csv(make(rng, n), path)
            rows += compared(make.__name__, path, repeat)
            os.unlink(path)
    return rows


def compared(name: str, path: str, repeat: int) -> list[Row]:
    for dtype in (np.float32, np.float64):  # compile
        next(CsvSource([path], label="y", dtype=dtype).chunks())
    jobs: dict[str, Callable[[], None]] = {
        "ours": lambda: ours(path, np.float64),
        "ours, float32": lambda: ours(path, np.float32),
        "ours, in a thread": lambda: ours(path, np.float64, thread=True),
        "arrow, one thread, no matrix": lambda: bare(path, threads=False),
        "arrow, no matrix": lambda: bare(path, threads=True),
    }
    if name != "mixed":  # strings make no matrix
        jobs["arrow, one thread"] = lambda: arrow(path, threads=False)
        jobs["arrow"] = lambda: arrow(path, threads=True)
        jobs["arrow by blocks, one thread"] = lambda: blocks(path, threads=False)
        jobs["arrow by blocks"] = lambda: blocks(path, threads=True)
    times = best_of(repeat, jobs)
    size = os.path.getsize(path) / 1e6
    rows = []
    for job, seconds in times.items():
        start = process_time()
        jobs[job]()
        cpu = process_time() - start
        rows.append(
            {
                "data": name,
                "reader": job,
                "MB/s": size / seconds,
                "MB/s of processor time": size / cpu,
                "times our time": seconds / times["ours"],
            }
        )
    return rows


def ours(path: str, dtype: type, thread: bool = False) -> None:
    chunks = CsvSource([path], label="y", dtype=dtype).chunks()
    for _ in prefetch(chunks) if thread else chunks:
        pass


def arrow(path: str, threads: bool) -> None:
    matrix(arrow_csv.read_csv(path, arrow_csv.ReadOptions(use_threads=threads)))


def blocks(path: str, threads: bool) -> None:
    options = arrow_csv.ReadOptions(use_threads=threads, block_size=BLOCK)
    for batch in arrow_csv.open_csv(path, options):
        matrix(batch)


def bare(path: str, threads: bool) -> None:
    arrow_csv.read_csv(path, arrow_csv.ReadOptions(use_threads=threads))


def matrix(table: pa.Table) -> None:
    X = np.empty((len(table), table.num_columns - 1))
    for j in range(X.shape[1]):
        X[:, j] = table.column(j).to_numpy()
    table.column(table.num_columns - 1).to_numpy()


if __name__ == "__main__":
    main("CSV to a matrix, 100 MB", run, repeat=3)
