"""From an svmlight file to a model: one pass of SPAM against what else reads files.

scikit-learn reads the file with ``load_svmlight_file`` and trains ``SGDClassifier`` for
one pass; Vowpal Wabbit (``pip install vowpalwabbit``) does both in one go, from a file
in its own format. Every rival runs within this process, so that no import counts.

The files are generated: words of a Zipf-like law, 40 a row, values of six digits; and
rows of 28 numbers, as physics has them.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDClassifier

from aucmax.workflows.plan import Plan
from aucmax.workflows.train import train
from bench import Row, best_of, main

SIZES = [int(size) for size in os.environ.get("AUCMAX_BENCH_MB", "75,1000").split(",")]
_PART = 50_000  # rows


def words(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    d = 200_000
    columns = np.sort((d * rng.random((n, 40)) ** 3).astype(np.int64), axis=1)
    columns += np.arange(40)  # no two alike
    return columns, rng.random((n, 40)), d + 40


def numbers(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, int]:
    return np.tile(np.arange(28), (n, 1)), rng.standard_normal((n, 28)), 28


def write(
    folder: Path, make: Callable[..., tuple[np.ndarray, np.ndarray, int]], size: int
) -> tuple[Path, Path, int]:
    """Write rows until there are ``size`` bytes, in two formats."""
    rng = np.random.default_rng(0)
    ours, theirs = folder / "rows.svm", folder / "rows.vw"
    rows = 0
    with open(ours, "w") as svm, open(theirs, "w") as vw:
        while svm.tell() < size:
            columns, values, d = make(rng, _PART)
            w = np.random.default_rng(1).standard_normal(d)
            score = np.einsum("ij,ij->i", w[columns], values)
            score += score.std() * rng.standard_normal(_PART)
            label = np.where(score > np.quantile(score, 0.9), "1", "-1")
            for y, row, x in zip(label, columns + 1, values, strict=True):
                text = " ".join(map("{}:{:.6g}".format, row.tolist(), x.tolist()))
                svm.write(f"{y} {text}\n")
                vw.write(f"{y} | {text}\n")
            rows += _PART
    return ours, theirs, rows


def run(repeat: int) -> list[Row]:
    results = []
    for size in SIZES:
        for make in (words, numbers):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                ours, theirs, rows = write(folder, make, size * 1_000_000)
                results.append(race(ours, theirs, rows, make.__name__, repeat))
    return results


def race(ours: Path, theirs: Path, rows: int, kind: str, repeat: int) -> Row:
    def aucmax() -> None:
        plan = Plan([str(ours)], "SPAM", passes=1)
        train(plan, ours.with_name("model.aucmax"))

    def sklearn() -> None:
        X, y = load_svmlight_file(str(ours))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        SGDClassifier(loss="log_loss", max_iter=1, tol=None).fit(X, y)

    def vowpal() -> None:
        model = theirs.with_name("model.vw")
        arguments = f"--data {theirs} -f {model} --loss_function logistic --quiet"
        vowpalwabbit.Workspace(arguments).finish()

    jobs = {"aucmax": aucmax, "sklearn": sklearn}
    try:
        import vowpalwabbit

        jobs["vowpal"] = vowpal
    except ImportError:
        pass
    small = ours.with_name("few.svm")  # compile first
    with open(ours) as file:
        small.write_text("".join(file.readline() for _ in range(1000)))
    train(Plan([str(small)], "SPAM", passes=1), ours.with_name("few.aucmax"))
    seconds = best_of(repeat, jobs)
    size = ours.stat().st_size / 1e6
    mine = seconds["aucmax"]
    return {
        "data": f"{kind}, {size:,.0f} MB, {rows:,} rows",
        "aucmax s": mine,
        "MB/s": size / mine,
        "sklearn/aucmax": seconds["sklearn"] / mine,
        "VW/aucmax": seconds.get("vowpal", np.nan) / mine,
    }


if __name__ == "__main__":
    main("From an svmlight file to a model, one pass", run, repeat=3)
