"""``aucmax warmup``: compile every kernel for every layout and float type."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from aucmax import SPAM, metrics
from aucmax.cli.terminal import Screen
from aucmax.io.open_data import open_data
from aucmax.registry import CLASSES, full_name, named

_FLOATS = (np.float32, np.float64)
# Parameters that select other kernels, for estimators that have them.
_VARIANTS: dict[str, Any] = dict(
    l1=1e-3, norm="l1", rank=2, covariance="diag", solver="cg", loss="logistic"
)


def run(names: Sequence[str], jobs: int, as_json: bool = False) -> None:
    """Compile the kernels of these algorithms, or of all."""
    names = [full_name(name) for name in names] or list(CLASSES)
    start = perf_counter()
    with Screen(quiet=True).step("Compiling"):
        _compile(names, jobs)
    seconds = perf_counter() - start
    if as_json:
        print(json.dumps({"estimators": names, "seconds": round(seconds, 3)}, indent=2))
        return
    Screen().print(
        f"Compiled {', '.join(names)}, the metrics and the readers (or found them in "
        f"the cache): {seconds:.1f} s."
    )


def _compile(names: Sequence[str], jobs: int) -> None:
    """Compile in processes: Numba's compiler holds the interpreter lock."""
    if jobs == 1:
        compile_readers()
        for name in names:
            compile_kernels([name])
        return
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        tasks = [pool.submit(compile_readers)]
        tasks += [pool.submit(compile_kernels, [name]) for name in names]
        for task in tasks:
            task.result()


def compile_kernels(names: Iterable[str]) -> None:
    """Fit these estimators, in all variants, and compute the metrics on a few rows."""
    dense = np.tile([[0.0, 2.0], [1.0, 0.0], [3.0, 1.0], [2.0, 4.0]], (2, 1))
    y = np.tile([0, 0, 1, 1], 2)
    for dtype in _FLOATS:
        rows = dense.astype(dtype)
        for X in (rows, sparse.csr_array(rows)):
            for estimator in _variants(names):
                estimator.fit(X, y)
                if hasattr(estimator, "partial_fit"):
                    estimator.partial_fit(X, y)
        scores = np.ascontiguousarray(rows[:, 0])
        for weight in (None, np.ones(len(y))):
            metrics.auc(y, scores, sample_weight=weight)
            metrics.roc_curve(y, scores, sample_weight=weight)
        metrics.auc_interval(y, scores)


def compile_readers() -> None:
    """Read a few rows of each format that has kernels."""
    with TemporaryDirectory() as folder:
        svm, csv = Path(folder, "rows.svm"), Path(folder, "rows.csv")
        svm.write_text("+1 1:1 3:2.5\n-1 2:1e30\n")
        csv.write_text('y,a,b,c\n1,2.5,red,some words\n0,1,blue,"other, words"\n')
        columns: dict[str, Any] = {"label": "y", "text": ["c"], "missing": "zero"}
        for dtype in _FLOATS:
            for path, options in ((svm, {}), (csv, columns)):
                for batch in open_data([str(path)], dtype=dtype, **options).batches():
                    SPAM().partial_fit(batch.rows, batch.labels)


def _variants(names: Iterable[str]) -> Iterator[Any]:
    """Yield each estimator with its defaults, and once for each variant it has."""
    for name in names:
        estimator = named(name)
        yield estimator
        shared = _VARIANTS.keys() & estimator.get_params().keys()
        for parameter in shared if name in CLASSES else ():
            yield clone(estimator).set_params(**{parameter: _VARIANTS[parameter]})
