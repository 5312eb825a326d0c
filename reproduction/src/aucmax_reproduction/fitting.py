"""One fit of a protocol: rows, parameter choice, training, AUC on test rows."""

import warnings
from collections.abc import Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid, StratifiedKFold
from threadpoolctl import threadpool_limits

from aucmax.metrics import auc, auc_interval, roc_curve
from aucmax_reproduction import datasets as registry
from aucmax_reproduction import user_data
from aucmax_reproduction.groupings import Rule, plausible
from aucmax_reproduction.protocol import OURS, PRINTED, Plan, Recipe, Subject
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.splits import Index, capped, dense_if_narrow, scaled

# A form for the best linear models on the rows of a run: the exact minimum of the
# square loss, which also identifies class groups, and BAMCV.
EXACT = "exact"
EXACT_BY = "LeastSquaresAUC"
CEILINGS = (EXACT_BY, "BAMCV")

Classes = NDArray[np.bool_]


class Job(NamedTuple):
    """A fit to do."""

    source: str
    table: str
    dataset: str
    rule: str  # name of the rule to try; "": that of the protocol
    algorithm: str
    form: str
    run: int


class Effort(NamedTuple):
    """Limits on the effort; None: as in the paper."""

    grid: int | None = None  # maximum values per parameter
    tune_rows: int | None = None  # maximum rows used for tuning
    rows: int | None = None  # maximum training rows
    seed: int = 0


class Ready(NamedTuple):
    """The scaled rows of a run; training rows are in random order."""

    X: Any
    y: Classes
    X_test: Any
    y_test: Classes
    X_valid: Any = None
    y_valid: Classes | None = None


def fitted(job: Job, effort: Effort) -> dict[str, Any]:
    """Do a fit and return its result line; a failure has an ``error``."""
    line = {key: value for key, value in job._asdict().items() if key != "source"}
    with (
        threadpool_limits(1),
        warnings.catch_warnings(record=True, action="always") as caught,
    ):
        try:
            line |= _fit(job, effort)
        except Exception as error:  # the other cells go on
            line |= {"error": f"{type(error).__name__}: {error}"}
    kinds = sorted({warning.category.__name__ for warning in caught})
    return line | ({"warnings": kinds} if kinds else {})


def rules_of(subject: Subject) -> dict[str, Rule]:
    """Return the plausible rules for the class groups of a set, by name."""
    assert subject.name is not None
    name = subject.name if subject.part is None else f"{subject.name}.{subject.part}"
    rules = plausible(registry.described(name).classes, subject.ratio)
    return {rule.name: rule for rule in rules}


def has_test_file(subject: Subject) -> bool:
    """Return whether the set has a test file that is used as such."""
    if subject.files:
        return len(subject.files) == 2 and not subject.merged
    assert subject.name is not None
    parts = registry.entry(subject.name).parts
    return not subject.merged and subject.part is None and "train" in parts


def choose(
    recipe: Recipe, form: str, ready: Ready, folds: int, effort: Effort, seed: int
) -> dict[str, Any]:
    """Return the parameters with the highest AUC on validation rows or folds.

    Parameters that make a learner diverge are excluded.
    """
    rows = slice(effort.tune_rows)
    X, y = ready.X[rows], ready.y[rows]
    choices: list[dict[str, Any]] = list(
        ParameterGrid(recipe.choices(form, ready.y, effort.grid))
    )
    if len(choices) == 1:
        return choices[0]
    if ready.y_valid is not None:
        trials = [(X, y, ready.X_valid[rows], ready.y_valid[rows])]
    else:
        parts = StratifiedKFold(folds).split(np.zeros(len(y)), y)
        trials = [(X[a], y[a], X[b], y[b]) for a, b in parts]

    def area(choice: dict[str, Any]) -> float:
        found = [
            auc(y_kept, scores(fit_model(recipe, form, choice, X, y, seed), X_kept))
            for X, y, X_kept, y_kept in trials
        ]
        return float(np.mean(found))

    best, highest, problem = None, -np.inf, ""
    for choice in choices:
        try:
            found = area(choice)
        except (ArithmeticError, ValueError) as error:
            problem = str(error)
            continue
        if found > highest:
            best, highest = choice, found
    if best is None:
        raise ValueError(
            f"None of the {len(choices)} parameter choices can be fitted: {problem}"
        )
    return best


def fit_model(
    recipe: Recipe,
    form: str,
    choice: Mapping[str, Any],
    X: Any,
    y: Classes,
    seed: int,
) -> Any:
    """Return a fitted model; as published, online learners get a stream."""
    model = seeded(recipe.model(form, choice), seed)
    if form != PRINTED or recipe.passes is None:
        return model.fit(X, y)
    if "n_expected" in model.get_params():
        model.set_params(n_expected=recipe.passes * len(y))
    rng = np.random.default_rng(seed)
    for _ in range(recipe.passes):
        order = rng.permutation(len(y))
        model.partial_fit(X[order], y[order], classes=[False, True])
    return model


def seeded(model: Any, seed: int) -> Any:
    """Set the random seed of a model and its parts."""
    known = model.get_params()
    seeds = [name for name in known if name.rpartition("__")[2] == "random_state"]
    return model.set_params(**dict.fromkeys(seeds, seed))


def scores(model: Any, X: Any) -> NDArray[np.float64]:
    """Return the scores of the rows."""
    found: NDArray[np.float64] = model.decision_function(X)
    return found


def best_accuracy(y: Classes, score: NDArray[np.float64]) -> float:
    """Return the accuracy at the best operating point of the ROC curve."""
    fpr, tpr, _ = roc_curve(y, score)
    positives = int(y.sum())
    right = tpr * positives + (1.0 - fpr) * (len(y) - positives)
    return float(right.max() / len(y))


@lru_cache(maxsize=1)
def prepared(
    source: str,
    table: str,
    dataset: str,
    rule: str,
    run: int,
    effort: Effort,
    scaling: str | None = None,
) -> Ready:
    """Return the scaled rows of a run; ``scaling`` overrides the protocol."""
    _, plan = protocol(source).plan(table)
    subject = plan.subjects[dataset]
    X, y, given = _rows(subject, rule)
    if plan.most_rows is not None and plan.most_rows < len(y):
        kept = capped(np.arange(len(y)), plan.most_rows, run, effort.seed)
        X, y, given = X[kept], y[kept], None
    parts = plan.split.parts(y, given, run, effort.seed)
    train = capped(parts.train, _least(plan.most_train, effort.rows), run, effort.seed)
    others: list[Index] = [parts.test]
    others += [] if parts.valid is None else [parts.valid]
    ready = scaled(X, scaling or subject.scaling or plan.scaling, train, *others)
    found = Ready(ready[0], y[train], ready[1], y[parts.test])
    if parts.valid is None:
        return found
    return found._replace(X_valid=ready[2], y_valid=y[parts.valid])


def _fit(job: Job, effort: Effort) -> dict[str, Any]:
    plan, recipe = recipe_of(job)
    ready = prepared(job.source, job.table, job.dataset, job.rule, job.run, effort)
    if recipe.most_rows is not None:
        rows = slice(recipe.most_rows)
        ready = ready._replace(X=ready.X[rows], y=ready.y[rows])
    form = OURS if job.form == EXACT else job.form
    seed = effort.seed + job.run
    start = perf_counter()
    chosen = choose(recipe, form, ready, plan.folds, effort, seed)
    tuned = perf_counter()
    model = fit_model(recipe, form, chosen, ready.X, ready.y, seed)
    seconds = perf_counter() - tuned
    score = scores(model, ready.X_test)
    return {
        "auc": float(auc(ready.y_test, score)),
        "auc_se": float(auc_interval(ready.y_test, score).se),
        "accuracy_optroc": best_accuracy(ready.y_test, score),
        "train_seconds": seconds,
        "tune_seconds": tuned - start,
        "chosen": chosen,
        "train_rows": len(ready.y),
        "test_rows": len(ready.y_test),
        "features": ready.X.shape[1],
        "positives": int(ready.y.sum() + ready.y_test.sum()),
    }


def recipe_of(job: Job) -> tuple[Plan, Recipe]:
    """Return the plan of a table and the recipe of an algorithm."""
    _, plan = protocol(job.source).plan(job.table)
    if job.form == EXACT:
        return plan, Recipe(job.algorithm)
    return plan, plan.recipes[job.algorithm]


@lru_cache(maxsize=1)
def _data(name: str, part: str | None) -> tuple[Any, Classes, NDArray[np.float64]]:
    X, y, labels, *_ = registry.load(name, part)
    return dense_if_narrow(X), y, labels


def _rows(subject: Subject, rule: str) -> tuple[Any, Classes, int | None]:
    """Return features, classes and the size of the training file, if there is one."""
    if subject.files:
        X, labels, first = user_data.load(subject.files)
        X, y = dense_if_narrow(X), user_data.positives(subject, labels)
        return X, y, first if has_test_file(subject) else None
    assert subject.name is not None
    X, y, labels = _data(subject.name, subject.part)
    grouping = rules_of(subject)[rule] if rule else subject.rule
    if grouping is not None:
        y = grouping.task.positives(labels)
    parts = registry.entry(subject.name).parts
    return X, y, parts["train"].rows if has_test_file(subject) else None


def _least(*limits: int | None) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return min(known, default=None)
