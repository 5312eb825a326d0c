"""What the benchmarks share: timing in turn, a table, JSON.

Rivals run in turn in one process, so that whatever else the machine does hits all of
them; of each the smallest time counts, and what is reported is a ratio.
"""

import argparse
import json
import lzma
import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_svmlight_file

Row = dict[str, Any]


def best_of(repeat: int, jobs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the smallest of ``repeat`` times of each job, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeat):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            times[name].append(perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def main(title: str, run: Callable[[int], list[Row]], repeat: int = 5) -> None:
    """Run a benchmark from the command line: print a table, or JSON to a file too."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--repeat", type=int, default=repeat, help="runs of each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    options = parser.parse_args()
    rows = run(options.repeat)
    table = Table(title=f"{title}, best of {options.repeat}")
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "data" else "right")
    for row in rows:
        table.add_row(*(_show(value) for value in row.values()))
    Console(width=max(140, Console().width)).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


def shared(name: str, positive: float | None = None) -> tuple[Any, np.ndarray] | None:
    """Return a real data set out of $AUCMAX_DATA or ../shared/data, if it is there.

    Labels above zero, or those equal to ``positive``, are the positive ones.
    """
    beside = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("AUCMAX_DATA", beside)) / f"{name}.svm.xz"
    if not path.exists():
        return None
    X, y = load_svmlight_file(BytesIO(lzma.decompress(path.read_bytes())))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.where(y > 0 if positive is None else y == positive, 1, 0)


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
