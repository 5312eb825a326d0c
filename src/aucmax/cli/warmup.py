"""``aucmax warmup``: compile every kernel for every layout and float type."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from scipy import sparse

import aucmax
from aucmax import metrics
from aucmax.scoring import as_text

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


def run() -> None:
    """Compile everything and say how long it took."""
    console = Console(highlight=False)
    with console.status("Compiling"):
        seconds = compile_kernels()
    names = ", ".join(aucmax.ESTIMATORS)
    console.print(f"Compiled {names} and the metrics, or found them: {seconds:.1f} s.")


def compile_kernels(
    names: Iterable[str] = tuple(aucmax.ESTIMATORS),
    layouts: Sequence[Callable[[Any], Any]] = LAYOUTS,
    floats: Sequence[type] = FLOATS,
) -> float:
    """Use these estimators and the measures on a few rows; return the seconds taken."""
    start = perf_counter()
    dense = np.array([[0.0, 2.0], [1.0, 0.0], [3.0, 1.0], [2.0, 4.0]])
    y = np.array([0, 0, 1, 1])
    for dtype in floats:
        for layout in layouts:
            X = layout(dense.astype(dtype))
            for estimator in _variants(names):
                estimator.fit(X, y)
                if hasattr(estimator, "partial_fit"):
                    estimator.partial_fit(X, y)
        scores: NDArray[Any] = dense[:, 0].astype(dtype)
        for sample_weight in (None, np.ones(len(y))):
            metrics.auc(y, scores, sample_weight=sample_weight)
            metrics.roc_curve(y, scores, sample_weight=sample_weight)
        metrics.auc_interval(y, scores)
    as_text(dense[:, 0].copy())
    return perf_counter() - start


def _variants(names: Iterable[str]) -> Iterator[Any]:
    """Yield each estimator as it is, and once for each detour it knows."""
    for name in names:
        estimator = getattr(aucmax, name)
        yield estimator()
        for parameter in _DETOURS.keys() & estimator().get_params().keys():
            yield estimator(**{parameter: _DETOURS[parameter]})
