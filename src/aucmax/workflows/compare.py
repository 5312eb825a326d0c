r"""Several algorithms on one data set: stratified folds, defensible differences.

The AUCs of J folds are not independent, as their training sets overlap; the usual
t-test takes them to be so and finds differences that are none. Nadeau and Bengio [1]_
put the overlap into the variance: for values :math:`v_j` with mean :math:`\bar v`

.. math:: t = \frac{\bar v}{\sqrt{(1/J + n_{test} / n_{train})\, s_v^2}}

has about a t distribution with J - 1 degrees of freedom. This is used for the mean AUC
and for the paired differences to the best algorithm. Which one is the best is found on
the same folds, so that each of its comparisons is one out of all pairs that might have
been made: p-values are Holm's [2]_ over all pairs.

References
----------
.. [1] C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine
   Learning 52, 2003. For repeated folds: R. R. Bouckaert and E. Frank, "Evaluating the
   Replicability of Significance Tests for Comparing Learning Algorithms", PAKDD 2004.
.. [2] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian
   Journal of Statistics 6, 1979.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from math import sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import stdtr, stdtrit
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from aucmax import registry
from aucmax.metrics import auc
from aucmax.workflows.choose import build as build_named

DEFAULT = ("SPAM", "LeastSquaresAUCCV", "BAMCV", "balanced-logistic")
RIVALS = ("balanced-logistic", "lightgbm")

_DENSE_SHARE = 0.3  # of values that are not zero: from here on, CSR costs more
_DENSE_BYTES = 1 << 30
_MOST_STEPS = 10_000  # of logistic regression, so that it gets to its minimum
_FEW = 30  # rows of a class that are enough to compile on


class Trial(NamedTuple):
    """An algorithm on a fold."""

    algorithm: str
    repeat: int
    fold: int
    train_rows: int
    test_rows: int
    auc: float
    seconds: float  # to train


class Estimate(NamedTuple):
    """A mean over folds, with its 95 % interval and a test of zero."""

    mean: float
    low: float
    high: float
    p_value: float


class Row(NamedTuple):
    """What came out for an algorithm."""

    algorithm: str
    auc: Estimate | None  # None if it failed
    seconds: float  # to train, mean of the folds
    behind: Estimate | None  # AUC minus that of the best; None for the best itself
    p_holm: float | None  # of ``behind``, as one of all pairs
    warnings: Mapping[str, int]  # in how many folds
    error: str | None


class Comparison(NamedTuple):
    """Algorithms on the same folds, the best one first."""

    rows: list[Row]
    trials: list[Trial]
    n_rows: int
    n_features: int
    n_positives: int
    folds: int
    repeats: int
    seed: int

    def summary(self) -> dict[str, Any]:
        """Return all of it, for JSON."""
        return {
            "rows": self.n_rows,
            "features": self.n_features,
            "positives": self.n_positives,
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
            "test": "corrected resampled t-test (Nadeau and Bengio 2003)",
            "algorithms": [
                {
                    "name": row.algorithm,
                    "auc": _interval(row.auc),
                    "train_seconds": _number(row.seconds),
                    "behind_best": _interval(row.behind),
                    "p_value": None if row.behind is None else row.behind.p_value,
                    "p_holm": row.p_holm,
                    "warnings": dict(row.warnings),
                    "error": row.error,
                }
                for row in self.rows
            ],
            "trials": [trial._asdict() for trial in self.trials],
        }

    def table(self) -> str:
        """Return a line of CSV for each trial, under the names of the columns."""
        lines = [",".join(Trial._fields)]
        lines += [",".join(str(value) for value in trial) for trial in self.trials]
        return "\n".join(lines) + "\n"


def compare(
    X: Any,
    y: NDArray[np.bool_],
    algorithms: Sequence[str] = DEFAULT,
    *,
    folds: int = 5,
    repeats: int = 1,
    seed: int = 0,
    watch: Callable[[str, int], None] = lambda algorithm, done: None,
) -> Comparison:
    """Train every algorithm on the same folds and compare their AUCs.

    Parameters
    ----------
    X : array or CSR of shape (n_rows, n_features)
        Features. CSR that is hardly sparse is made dense, for all algorithms alike.
    y : array of bool of shape (n_rows,)
        Which rows are positive.
    algorithms : sequence of str
        Names of estimators of aucmax, "balanced-logistic" (logistic regression with
        balanced class weights on standardised features, to its minimum) or "lightgbm"
        (LightGBM as it comes), each with its default parameters.
    folds, repeats : int
        The rows are cut into ``folds`` parts with the same share of positives,
        ``repeats`` times.
    seed : int, default=0
        Of the folds and of all algorithms.
    watch : callable
        Is told which algorithm is at work, and how many fits are done, of all
        algorithms on all folds.

    Returns
    -------
    Comparison
        Best first. An algorithm that fails has its ``error`` and no AUC.
    """
    names = list(dict.fromkeys(map(full_name, algorithms)))
    least = int(min(y.sum(), len(y) - y.sum()))
    if folds < 2 or repeats < 1:
        raise ValueError("There must be two folds at least, and one repeat.")
    if least < folds:
        raise ValueError(
            f"There are only {least:,} rows of the smaller class, too few for {folds} "
            "folds with both classes."
        )
    X = _suited(X)
    splitter = RepeatedStratifiedKFold(
        n_splits=folds, n_repeats=repeats, random_state=seed
    )
    splits = list(splitter.split(np.zeros(len(y)), y))
    trials, problems, errors = [], {}, {}
    for i, name in enumerate(names):
        before = i * len(splits)
        watch(name, before)
        model = build(name, seed, sparse.issparse(X))
        noted: dict[str, int] = {}
        problems[name] = noted
        try:
            _compile(model, X, y)
            for trial in _trials(name, model, X, y, splits, folds, noted):
                trials.append(trial)
                watch(name, before + trial.repeat * folds + trial.fold + 1)
        except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
            errors[name] = f"{type(error).__name__}: {error}"
            trials = [trial for trial in trials if trial.algorithm != name]
    rows = _ranked(names, trials, problems, errors)
    return Comparison(
        rows, trials, X.shape[0], X.shape[1], int(y.sum()), folds, repeats, seed
    )


def corrected_t(values: NDArray[np.float64], overlap: float) -> Estimate:
    """Return the mean of values from folds, its interval, and p of a mean of zero.

    ``overlap`` is the number of test rows by that of training rows.
    """
    n = len(values)
    mean = float(np.mean(values))
    se = sqrt((1 / n + overlap) * np.var(values, ddof=1))
    if se == 0.0:
        return Estimate(mean, mean, mean, 1.0 if mean == 0.0 else 0.0)
    half = float(stdtrit(n - 1, 0.975)) * se
    p_value = 2.0 * float(stdtr(n - 1, -abs(mean) / se))
    return Estimate(mean, mean - half, mean + half, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number, by Holm's method."""
    n = len(p_values)
    adjusted, largest = [0.0] * n, 0.0
    for rank, i in enumerate(sorted(range(n), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (n - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def full_name(name: str) -> str:
    """Return an algorithm's name as it is spelt."""
    if name.lower() not in RIVALS:
        return registry.full_name(name)
    if name.lower() == "lightgbm" and find_spec("lightgbm") is None:
        raise ValueError("lightgbm is not installed: pip install lightgbm")
    return name.lower()


def build(name: str, seed: int, is_sparse: bool) -> Any:
    """Return an algorithm with its default parameters."""
    if name == "balanced-logistic":
        scaler = _sparse_scaler() if is_sparse else StandardScaler()
        logistic = LogisticRegression(class_weight="balanced", max_iter=_MOST_STEPS)
        return make_pipeline(scaler, logistic)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(random_state=seed, verbose=-1)
    return build_named(name, {}, seed)


def _sparse_scaler() -> Any:
    """Return what standardises CSR, and centres the features that are seldom zero.

    Of a table these are its numbers: without it, a year would be 2020 deviations off,
    and no solver would come to an end. To centre the others would fill the matrix.
    """
    to_dense = FunctionTransformer(_dense, accept_sparse=True)
    often = make_pipeline(to_dense, StandardScaler())
    rare = StandardScaler(with_mean=False)
    parts = [("often", often, _often), ("rare", rare, _rare)]
    return ColumnTransformer(parts, sparse_threshold=1.0)


def _dense(X: Any) -> Any:
    return X.toarray()


def _often(X: Any) -> NDArray[Any]:
    """Return the features that are not zero in most rows."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return np.flatnonzero(2 * counts > X.shape[0])


def _rare(X: Any) -> NDArray[Any]:
    return np.setdiff1d(np.arange(X.shape[1]), _often(X))


def _suited(X: Any) -> Any:
    """Return X dense if that is cheaper than CSR."""
    if not sparse.issparse(X):
        return X
    cells = X.shape[0] * X.shape[1]
    if X.nnz < _DENSE_SHARE * cells or cells * X.dtype.itemsize > _DENSE_BYTES:
        return sparse.csr_array(X)
    return X.toarray()


def _compile(model: Any, X: Any, y: NDArray[np.bool_]) -> None:
    """Fit a few rows, so that no fold pays for compilation."""
    few = np.concatenate([np.flatnonzero(y)[:_FEW], np.flatnonzero(~y)[:_FEW]])
    with warnings.catch_warnings(action="ignore"):
        clone(model).fit(X[few], y[few])


def _trials(
    name: str,
    model: Any,
    X: Any,
    y: NDArray[np.bool_],
    splits: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    folds: int,
    noted: dict[str, int],
) -> Iterator[Trial]:
    """Yield the folds of one algorithm; count the kinds of warnings."""
    for i, (train, test) in enumerate(splits):
        X_train, y_train, X_test = X[train], y[train], X[test]
        with warnings.catch_warnings(record=True, action="always") as caught:
            fresh = clone(model)
            start = perf_counter()
            fresh.fit(X_train, y_train)
            seconds = perf_counter() - start
            scores = _scores(fresh, X_test)
        for kind in {warning.category.__name__ for warning in caught}:
            noted[kind] = noted.get(kind, 0) + 1
        area = float(auc(y[test], scores))
        repeat, fold = divmod(i, folds)
        yield Trial(name, repeat, fold, len(train), len(test), area, seconds)


def _scores(model: Any, X: Any) -> NDArray[Any]:
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def _ranked(
    names: Sequence[str],
    trials: Sequence[Trial],
    problems: Mapping[str, Mapping[str, int]],
    errors: Mapping[str, str],
) -> list[Row]:
    """Return the algorithms, best first, each compared with the best."""
    mine = {name: [one for one in trials if one.algorithm == name] for name in names}
    areas = {
        name: np.array([one.auc for one in mine[name]])
        for name in names
        if name not in errors
    }
    if not areas:
        return [Row(n, None, np.nan, None, None, problems[n], errors[n]) for n in names]
    overlap = float(np.mean([one.test_rows / one.train_rows for one in trials]))
    order = sorted(areas, key=lambda name: -float(areas[name].mean()))
    pairs = list(combinations(order, 2))
    tests = {
        (first, second): corrected_t(areas[second] - areas[first], overlap)
        for first, second in pairs
    }
    adjusted = dict(zip(pairs, holm([t.p_value for t in tests.values()]), strict=True))
    rows = []
    for name in order:
        estimate = corrected_t(areas[name], overlap)
        within = estimate._replace(
            low=max(0.0, estimate.low), high=min(1.0, estimate.high)
        )
        seconds = float(np.mean([one.seconds for one in mine[name]]))
        pair = order[0], name
        behind, p = tests.get(pair), adjusted.get(pair)
        rows.append(Row(name, within, seconds, behind, p, problems[name], None))
    failed = [name for name in names if name in errors]
    return rows + [
        Row(n, None, np.nan, None, None, problems[n], errors[n]) for n in failed
    ]


def _interval(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {"value": estimate.mean, "low": estimate.low, "high": estimate.high}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
