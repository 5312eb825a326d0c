r"""Comparison of algorithms by cross-validation, with tests of the differences.

The AUCs of J folds are not independent, because their training sets overlap; the usual
t-test ignores this and finds too many differences. Nadeau and Bengio [1]_ correct the
variance for the overlap: for values :math:`v_j` with mean :math:`\bar v`

.. math:: t = \frac{\bar v}{\sqrt{(1/J + n_{test} / n_{train})\, s_v^2}}

has approximately a t distribution with J - 1 degrees of freedom. This is used for the
means and for the paired differences to the best algorithm. The best algorithm is
chosen on the same folds, so each comparison with it is one of all pairs: p-values are
adjusted for all pairs by Holm's method [2]_.

References
----------
.. [1] C. Nadeau and Y. Bengio, "Inference for the Generalization Error", Machine
   Learning 52, 2003. For repeated folds: R. R. Bouckaert and E. Frank, "Evaluating the
   Replicability of Significance Tests for Comparing Learning Algorithms", PAKDD 2004.
.. [2] S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian
   Journal of Statistics 6, 1979.
"""

import warnings
from collections import Counter
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
from aucmax.goals import AUC, Goal, NetBenefit, PrecisionAtTop, parse
from aucmax.metrics import auc
from aucmax.workflows.choose import build as build_named

DEFAULT = ("SPAM", "LeastSquaresAUCCV", "BAMCV", "balanced-logistic")
BASELINES = ("balanced-logistic", "lightgbm")

_DENSE_SHARE = 0.3  # of nonzero values, above which CSR costs more than dense
_DENSE_BYTES = 1 << 30
_MAX_STEPS = 10_000  # of logistic regression, enough to converge
_COMPILE_ROWS = 30  # of each class


class Trial(NamedTuple):
    """The result of one algorithm on one fold."""

    algorithm: str
    repeat: int
    fold: int
    train_rows: int
    test_rows: int
    auc: float
    goal: float  # value of the goal
    seconds: float  # of training


class Estimate(NamedTuple):
    """A mean over folds, with its 95 % confidence interval and a test of zero."""

    mean: float
    low: float
    high: float
    p_value: float


class Row(NamedTuple):
    """The result of one algorithm."""

    algorithm: str
    auc: Estimate | None  # None if it failed
    goal: Estimate | None
    seconds: float  # of training, mean over folds
    behind: Estimate | None  # goal minus that of the best; None for the best
    p_holm: float | None  # of ``behind``, adjusted for all pairs
    warnings: Mapping[str, int]  # number of folds for each category
    error: str | None


class Comparison(NamedTuple):
    """Algorithms on the same folds, best first."""

    rows: list[Row]
    trials: list[Trial]
    n_rows: int
    n_features: int
    n_positives: int
    folds: int
    repeats: int
    seed: int
    goal: str

    def summary(self) -> dict[str, Any]:
        """Return the results for JSON."""
        return {
            "rows": self.n_rows,
            "features": self.n_features,
            "positives": self.n_positives,
            "folds": self.folds,
            "repeats": self.repeats,
            "seed": self.seed,
            "goal": self.goal,
            "test": "corrected resampled t-test (Nadeau and Bengio 2003)",
            "algorithms": [
                {
                    "name": row.algorithm,
                    "auc": _interval(row.auc),
                    "goal": _interval(row.goal),
                    "train_seconds": None if row.auc is None else row.seconds,
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
        """Return the trials as CSV."""
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
    goal: str | Goal = "auc",
    watch: Callable[[str, int], None] = lambda algorithm, done: None,
) -> Comparison:
    """Compare algorithms by a goal on the same stratified folds, best first.

    ``algorithms`` are names of aucmax estimators, "balanced-logistic" (logistic
    regression with balanced class weights on standardised features) or "lightgbm", each
    with its default parameters. ``goal`` is one of :mod:`aucmax.goals`; "precision@k"
    means the same share of the rows in each fold. ``watch`` is called with the name of
    the current algorithm and the number of fits done. An algorithm that fails has an
    ``error`` and no AUC.
    """
    names = list(dict.fromkeys(map(full_name, algorithms)))
    aim = parse(goal)
    measured = _in_folds(aim, len(y))
    least = int(min(y.sum(), len(y) - y.sum()))
    if folds < 2 or repeats < 1:
        raise ValueError("compare needs at least two folds and one repeat.")
    if least < folds:
        raise ValueError(
            f"The smaller class has only {least:,} rows, too few for {folds} folds: "
            "use fewer folds."
        )
    X = _in_cheaper_layout(X)
    splitter = RepeatedStratifiedKFold(
        n_splits=folds, n_repeats=repeats, random_state=seed
    )
    splits = list(splitter.split(np.zeros(len(y)), y))
    trials: list[Trial] = []
    caught = {name: Counter[str]() for name in names}  # categories of warnings
    errors: dict[str, str] = {}
    for i, name in enumerate(names):
        done = i * len(splits)
        watch(name, done)
        model = build(name, seed, sparse.issparse(X))
        try:
            _compile(model, X, y)
            for trial in _trials(
                name, model, X, y, splits, folds, measured, caught[name]
            ):
                trials.append(trial)
                done += 1
                watch(name, done)
        except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
            errors[name] = f"{type(error).__name__}: {error}"
            trials = [trial for trial in trials if trial.algorithm != name]
    rows = _ranked(names, trials, caught)
    rows += [
        Row(n, None, None, np.nan, None, None, caught[n], errors[n]) for n in errors
    ]
    return Comparison(
        rows,
        trials,
        X.shape[0],
        X.shape[1],
        int(y.sum()),
        folds,
        repeats,
        seed,
        str(aim),
    )


def corrected_t(values: NDArray[np.float64], overlap: float) -> Estimate:
    """Return the mean of values from folds, with its confidence interval and p-value.

    ``overlap`` is the number of test rows divided by that of training rows.
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
    """Return p-values adjusted by Holm's method."""
    n = len(p_values)
    adjusted, largest = [0.0] * n, 0.0
    for rank, i in enumerate(sorted(range(n), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (n - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def full_name(name: str) -> str:
    """Return the exact name of an algorithm; case does not matter."""
    if name.lower() not in BASELINES:
        return registry.full_name(name)
    if name.lower() == "lightgbm" and find_spec("lightgbm") is None:
        raise ValueError("lightgbm is not installed: pip install lightgbm")
    return name.lower()


def build(name: str, seed: int, is_sparse: bool) -> Any:
    """Return an algorithm with its default parameters."""
    if name == "balanced-logistic":
        scaler = _sparse_scaler() if is_sparse else StandardScaler()
        logistic = LogisticRegression(class_weight="balanced", max_iter=_MAX_STEPS)
        return make_pipeline(scaler, logistic)
    if name == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(random_state=seed, verbose=-1)
    return build_named(name, {}, seed)


def _in_folds(goal: Goal, n_rows: int) -> Goal:
    """Return the goal for a fold of the rows."""
    if isinstance(goal, NetBenefit):
        raise ValueError(
            f"compare cannot use goal={goal}, which needs probabilities; these "
            "algorithms give scores. Train a model each and evaluate it."
        )
    if isinstance(goal, PrecisionAtTop) and not isinstance(goal.k, float):
        if goal.k >= n_rows:
            raise ValueError(f"goal={goal}: there are only {n_rows:,} rows.")
        return PrecisionAtTop(goal.k / n_rows)
    return goal


def _sparse_scaler() -> Any:
    """Return a scaler for CSR that centres the features that are rarely zero.

    Without centring, numeric columns such as a year keep solvers from converging.
    Centring the other features would make the matrix dense.
    """
    to_dense = FunctionTransformer(sparse.csr_array.toarray, accept_sparse=True)
    centred = make_pipeline(to_dense, StandardScaler())
    scaled = StandardScaler(with_mean=False)
    parts = [("dense", centred, _is_dense), ("rare", scaled, lambda X: ~_is_dense(X))]
    return ColumnTransformer(parts, sparse_threshold=1.0)


def _is_dense(X: Any) -> NDArray[np.bool_]:
    """Return which features are nonzero in most rows."""
    counts = np.bincount(X.indices, minlength=X.shape[1])
    return np.asarray(2 * counts > X.shape[0])


def _in_cheaper_layout(X: Any) -> Any:
    """Return X dense if that is cheaper than CSR."""
    if not sparse.issparse(X):
        return X
    cells = X.shape[0] * X.shape[1]
    if X.nnz < _DENSE_SHARE * cells or cells * X.dtype.itemsize > _DENSE_BYTES:
        return sparse.csr_array(X)
    return X.toarray()


def _compile(model: Any, X: Any, y: NDArray[np.bool_]) -> None:
    """Fit a few rows, to keep compilation out of the times of the folds."""
    few = np.concatenate([np.flatnonzero(side)[:_COMPILE_ROWS] for side in (y, ~y)])
    with warnings.catch_warnings(action="ignore"):
        clone(model).fit(X[few], y[few])


def _trials(
    name: str,
    model: Any,
    X: Any,
    y: NDArray[np.bool_],
    splits: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    folds: int,
    goal: Goal,
    categories: Counter[str],
) -> Iterator[Trial]:
    """Yield the trials of one algorithm; count the categories of warnings."""
    for i, (train, test) in enumerate(splits):
        X_train, y_train, X_test = X[train], y[train], X[test]
        with warnings.catch_warnings(record=True, action="always") as caught:
            fresh = clone(model)
            start = perf_counter()
            fresh.fit(X_train, y_train)
            seconds = perf_counter() - start
            scores = _scores(fresh, X_test)
        categories.update({warning.category.__name__ for warning in caught})
        area = value = float(auc(y[test], scores))
        if not isinstance(goal, AUC):
            value = goal.interval(y[test], scores).value
        repeat, fold = divmod(i, folds)
        yield Trial(name, repeat, fold, len(train), len(test), area, value, seconds)


def _scores(model: Any, X: Any) -> NDArray[Any]:
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


def _ranked(
    names: Sequence[str],
    trials: Sequence[Trial],
    caught: Mapping[str, Mapping[str, int]],
) -> list[Row]:
    """Return the algorithms that have trials, best first, compared with the best."""
    own = {name: [one for one in trials if one.algorithm == name] for name in names}
    goals = {name: np.array([t.goal for t in found]) for name, found in own.items()}
    order = sorted(filter(own.get, names), key=lambda name: -float(goals[name].mean()))
    overlap = float(np.mean([t.test_rows / t.train_rows for t in trials] or [0.0]))
    tests = {
        (better, worse): corrected_t(goals[worse] - goals[better], overlap)
        for better, worse in combinations(order, 2)
    }
    adjusted = dict(zip(tests, holm([t.p_value for t in tests.values()]), strict=True))
    rows = []
    for name in order:
        area = _share(np.array([trial.auc for trial in own[name]]), overlap)
        goal = _share(goals[name], overlap)
        seconds = float(np.mean([trial.seconds for trial in own[name]]))
        pair = order[0], name
        behind, p_holm = tests.get(pair), adjusted.get(pair)
        rows.append(Row(name, area, goal, seconds, behind, p_holm, caught[name], None))
    return rows


def _share(values: NDArray[np.float64], overlap: float) -> Estimate:
    """Return the mean of shares, with a confidence interval between 0 and 1."""
    found = corrected_t(values, overlap)
    return found._replace(low=max(0.0, found.low), high=min(1.0, found.high))


def _interval(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    return {"value": estimate.mean, "low": estimate.low, "high": estimate.high}
