"""Shared code of the benchmarks: timing, data sets, tables and JSON output.

Rivals run alternately in one process, so that other load on the machine affects all of
them; the smallest time of each counts. Data sets are read from $AUCMAX_DATA or
../shared/data; sets that are not there are skipped.
"""

import argparse
import json
import lzma
import os
import sys
import warnings
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.datasets import load_svmlight_file

Row = dict[str, Any]
# Sets that come as a training and a test file.
PARTED = ("a9a", "higgs_sample", "ijcnn1", "letter", "mnist", "reuters_money")
PARTED += ("sector", "splice", "svmguide1", "svmguide4", "usps")
# Sets on which default step sizes were chosen, and sets that had no part in it.
CHOSEN_ON = ("a9a.train", "german", "diabetes", "ijcnn1.train", "spambase", "magic04")
HELD_OUT = ("australian", "breastw", "cod-rna", "donors", "fourclass", "ionosphere")
HELD_OUT += ("phishing", "phoneme", "svmguide1.train", "thyroid")


class Options(NamedTuple):
    """Command-line options of a benchmark."""

    repeat: int
    scale: float = 1.0
    sets: tuple[str, ...] = ()


Job = Callable[[Options], list[Row]]


def main(doc: str, jobs: dict[str, Job], repeat: int = 3) -> None:
    """Run jobs from the command line: print tables, and write JSON if asked to."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job", nargs="+", choices=jobs)
    parser.add_argument(
        "--repeat",
        type=int,
        default=repeat,
        help="runs or splits (default: %(default)s)",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor of the size of generated data"
    )
    parser.add_argument("--sets", nargs="+", default=[], help="only these data sets")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results here")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {}
    for job in given.job:
        options = Options(given.repeat, given.scale, tuple(given.sets))
        results[job] = jobs[job](options)
        show(job, results[job])
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")


def show(title: str, rows: list[Row]) -> None:
    """Print rows as a table."""
    headings = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(title=title)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "data" else "right")
    for row in rows:
        table.add_row(*(_text(row.get(heading, "")) for heading in headings))
    Console(width=max(140, Console().width)).print(table)


def best_of(repeat: int, jobs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the smallest of ``repeat`` times of each job, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeat):
        for name, job in jobs.items():
            start = perf_counter()
            job()
            times[name].append(perf_counter() - start)
    return {name: min(seconds) for name, seconds in times.items()}


def shared(
    name: str, positive: Callable[[Any], Any] | None = lambda y: y > 0
) -> tuple[Any, np.ndarray] | None:
    """Return rows and labels of one file, or None if it is not there.

    ``positive`` selects the labels of the positive class; None keeps labels unchanged.
    """
    beside = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("AUCMAX_DATA", beside)) / f"{name}.svm.xz"
    if not path.exists():
        print(f"{name} is not in {path.parent}: skipped", file=sys.stderr)
        return None
    X, y = load_svmlight_file(BytesIO(lzma.decompress(path.read_bytes())))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y if positive is None else np.where(positive(y), 1, 0)


def read(name: str) -> tuple[Any, np.ndarray] | None:
    """Return all rows of a set and a mask of the positives, or None.

    In sets with more than two classes, the rarer half of the labels is positive.
    """
    files = [f"{name}.{part}" for part in ("train", "test")]
    if name not in PARTED:
        files = ["svmguide3.train" if name == "svmguide3" else name]
    parts = [found for file in files if (found := shared(file, positive=None))]
    if len(parts) < len(files):
        return None
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize((X.shape[0], width))
    labels = np.concatenate([y for _, y in parts])
    found, counts = np.unique(labels, return_counts=True)
    rarer = found[np.argsort(counts, kind="stable")][: max(len(found) // 2, 1)]
    return sparse.vstack([X for X, _ in parts]).tocsr(), np.isin(labels, rarer)


def lines_of(path: Path) -> list[Row]:
    """Return the lines of a JSON-lines file; none if it does not exist."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def sampled(X: Any, y: np.ndarray, rows: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Return at most this many random rows."""
    if len(y) <= rows:
        return X, y
    keep = np.random.default_rng(seed).permutation(len(y))[:rows]
    return X[keep], y[keep]


def normal_rows(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal features and labels, about one in seven positive."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + rng.standard_normal(n) > 1.5).astype(int)


def svmlight_text(kind: str, rows: int) -> str:
    """Return svmlight rows: 28 numbers, 60 words of 200,000, or 14 ones of 123."""
    rng = np.random.default_rng(0)
    if kind == "numbers":
        columns = np.tile(np.arange(28), (rows, 1))
        values = rng.standard_normal((rows, 28))
    else:
        width, most = (60, 200_000) if kind == "words" else (14, 123)
        columns = np.sort((most * rng.random((rows, width)) ** 3).astype(int), axis=1)
        columns += np.arange(width)  # no two are equal
        values = rng.random((rows, width)) if kind == "words" else np.ones_like(columns)
    weight = np.random.default_rng(1).standard_normal(columns.max() + 1)
    score = (weight[columns] * values).sum(axis=1)
    score += score.std() * rng.standard_normal(rows)
    labels = np.where(score > np.quantile(score, 0.9), "+1", "-1")
    pairs = map(zip, (columns + 1).tolist(), values.tolist())
    lines = zip(labels, pairs, strict=True)
    return "".join(
        f"{label} {' '.join(f'{j}:{x:.6g}' for j, x in pair)}\n"
        for label, pair in lines
    )


def repeated(path: Path, text: str, size: float, head: str = "") -> None:
    """Write this text again and again, until the file has so many bytes."""
    with path.open("w") as file:
        file.write(head)
        for _ in range(max(round(size / len(text)), 1)):
            file.write(text)


def csv_text(n: int) -> str:
    """Return lines with missing values, dates, text, and half of n distinct towns."""
    rng = np.random.default_rng(0)
    towns = np.where(rng.random(n) < 0.5, rng.integers(0, 1000, n), rng.permutation(n))
    words = np.array(["good", "bad", "late", "early", "cheap", "dear", "broken", "new"])
    texts = [" ".join(four) for four in words[rng.integers(0, len(words), (n, 4))]]
    amounts = [f"{x:.4f}" if x > 50.0 else "" for x in rng.normal(100.0, 30.0, n)]
    days, labels = (
        rng.integers(1, 29, n),
        rng.choice(["fine", "fraud"], n, p=[0.9, 0.1]),
    )
    columns = zip(amounts, days, towns, texts, labels, strict=True)
    return "".join(
        f"{amount},2024-03-{day:02},town {town},{text},{label}\n"
        for amount, day, town, text, label in columns
    )


def _text(value: Any) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
