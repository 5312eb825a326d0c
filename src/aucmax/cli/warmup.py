"""``aucmax warmup``: compile every kernel for every layout and float type."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from aucmax import SPAM, metrics
from aucmax.cli.screen import Console, Screen
from aucmax.io.open_data import open_data
from aucmax.registry import CLASSES, full_name, named

LAYOUTS: tuple[Callable[[Any], Any], ...] = (np.asarray, sparse.csr_array)
FLOATS = (np.float32, np.float64)

# Parameters that lead an estimator which has them through code of its own.
_DETOURS = {
    "l1": 1e-3,
    "norm": "l1",
    "rank": 2,
    "covariance": "diag",
    "solver": "cg",
    "loss": "logistic",
}


def run(names: Sequence[str], jobs: int, as_json: bool = False) -> None:
    """Compile what these algorithms need, or all, and say how long it took."""
    names = [full_name(name) for name in names] or list(CLASSES)
    start = perf_counter()
    with Screen(quiet=True).step("Compiling"):
        _compile(names, jobs)
    seconds = perf_counter() - start
    if as_json:
        told = {"estimators": names, "seconds": round(seconds, 3)}
        print(json.dumps(told, indent=2))
        return
    Console(highlight=False).print(
        f"Compiled {', '.join(names)}, the measures and the readers, "
        f"or found them: {seconds:.1f} s."
    )


def _compile(names: Sequence[str], jobs: int) -> None:
    """Compile the readers, and what these algorithms need.

    Compiling is Python's work, so processes do it side by side. Estimators that are
    made of others come last, when those are on disk.
    """
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


def compile_kernels(
    names: Iterable[str] = tuple(CLASSES),
    layouts: Sequence[Callable[[Any], Any]] = LAYOUTS,
    floats: Sequence[type] = FLOATS,
    detours: bool = True,
) -> None:
    """Use these estimators and the measures on a few rows.

    The estimators as they are, and with ``detours`` in their other forms too.
    """
    dense = np.tile([[0.0, 2.0], [1.0, 0.0], [3.0, 1.0], [2.0, 4.0]], (2, 1))
    y = np.tile([0, 0, 1, 1], 2)
    for dtype in floats:
        for layout in layouts:
            X = layout(dense.astype(dtype))
            for estimator in _variants(names, detours):
                estimator.fit(X, y)
                if hasattr(estimator, "partial_fit"):
                    estimator.partial_fit(X, y)
        scores: NDArray[Any] = dense[:, 0].astype(dtype)
        for sample_weight in (None, np.ones(len(y))):
            metrics.auc(y, scores, sample_weight=sample_weight)
            metrics.roc_curve(y, scores, sample_weight=sample_weight)
        metrics.auc_interval(y, scores)


def compile_readers() -> None:
    """Read a few rows of every format that has kernels."""
    texts = {
        "rows.svm": "+1 1:1 3:2.5\n-1 2:1e30\n",
        "rows.csv": 'y,a,b,c\n1,2.5,red,some words\n0,1,blue,"other, words"\n',
    }
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            path = Path(folder) / name
            path.write_text(text)
            options: dict[str, Any] = {}
            if path.suffix == ".csv":
                options = {"label": "y", "text": ["c"], "missing": "zero"}
            for dtype in FLOATS:
                for chunk in open_data([str(path)], dtype=dtype, **options).chunks():
                    SPAM().partial_fit(chunk.X, chunk.y)


def _variants(names: Iterable[str], detours: bool = True) -> Iterator[Any]:
    """Yield each estimator as it is, and once for each detour it knows."""
    for name in names:
        estimator = named(name)
        yield estimator
        known = _DETOURS.keys() & estimator.get_params().keys()
        for parameter in known if detours and name in CLASSES else ():
            yield clone(estimator).set_params(**{parameter: _DETOURS[parameter]})
