"""Cross-fitting: score each row by models that were not trained on it.

If every row is held out exactly once, as with folds, the fitted member is the mean of
the fold models. Otherwise, as with time-series splits, the splits only provide the
out-of-fold scores, and the member is refitted on all rows.

Boosted trees grow in all folds side by side, and beside the other models. Those are
fitted one after another, each on all cores: in parallel, small models would wait for
Python's global lock.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.validation import has_fit_parameter

from aucmax.base.folds import Repeats, dealt, drawn
from aucmax.base.ranker import Ranker
from aucmax.blend.boosting import Boosting
from aucmax.blend.layout import TableModel, TableRows
from aucmax.core.rows import Float, Index

Progress = Callable[[str, int, int], None]  # member, models fitted, models in total

_BLOCK = 1 << 16  # rows that are scored at a time
_BOOSTED_SHARE = 0.6  # of the time budget, for each member of boosted trees at most
_NEAR = 1e-3  # probabilities of members are clipped to [_NEAR, 1 - _NEAR]


class Member(NamedTuple):
    """A named, unfitted estimator, or boosted trees."""

    name: str
    estimator: Any
    most_rows: int = sys.maxsize  # that a model is trained on


class TrainingRows(NamedTuple):
    """Rows with non-zero weight, as the members see them."""

    X: TableRows
    signed: Float  # row weights, negative for the negative class
    weighted: bool  # False if all weights are one


class Fold(NamedTuple):
    """Training and test rows of one model."""

    train: Index
    test: Index  # held-out rows that the model scores
    keep_model: bool  # whether the model is part of the fitted member


class FittedMember(NamedTuple):
    """A cross-fitted member."""

    name: str
    models: list[Any]  # the score is their mean
    scores: Float  # (n,) out-of-fold scores; NaN for rows that were never held out
    seconds: float
    rows: int  # largest number of rows a model was trained on
    tested: list[Any]  # models of the folds with test rows, of the first round


class _Count:
    """Number of fitted models, which is reported by whichever thread fits one."""

    def __init__(self, total: int, progress: Progress) -> None:
        self.done, self._total, self._progress = 0, total, progress
        self._lock = Lock()

    def add(self, name: str, models: int) -> None:
        """Report that models of a member are fitted."""
        with self._lock:
            self.done += models
            self._progress(name, self.done, self._total)


class _FoldModel(NamedTuple):
    """A model fitted to one fold."""

    estimator: Any
    scores: Float  # of the test rows
    seconds: float
    rows: int


def split_rows(
    cv: Any, signed: Float, groups: Any, seed: int, equal: Repeats | None = None
) -> list[Fold]:
    """Split the rows into folds; row numbers count rows with non-zero weight only.

    A user's splits number all rows, those of weight zero included. Duplicate rows share
    a fold, unless the user gives splits or groups. If the test rows do not cover every
    row exactly once, a last fold without test rows trains on all rows.
    """
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != signed.shape:
            raise ValueError(
                f"groups.shape == {groups.shape}, expected {signed.shape}: pass one "
                "group label per row."
            )
    present = np.flatnonzero(signed)
    positive, n = signed[present] > 0.0, len(present)
    splits = None
    if isinstance(cv, int | np.integer):
        if groups is None and equal and equal.copies:
            splits = dealt(int(cv), positive, equal.of, seed)
        if splits is None:
            present_groups = None if groups is None else groups[present]
            splitter = _splitter(int(cv), positive, present_groups, seed)
            splits = list(splitter.split(np.zeros(n), positive, present_groups))
    else:
        splitter = check_cv(cv, signed > 0.0, classifier=True)
        given = splitter.split(np.zeros(len(signed)), signed > 0.0, groups)
        splits = [(_renumber(present, a), _renumber(present, b)) for a, b in given]
    for k, split in enumerate(splits):
        for rows, role in zip(split, ("training", "test"), strict=True):
            if positive[rows].all() or not positive[rows].any():
                raise ValueError(
                    f"Split {k} of cv has {role} rows of one class only; both classes "
                    "are needed. Use fewer or stratified splits."
                )
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    once = bool((times == 1).all())
    folds = [Fold(train, test, once) for train, test in splits]
    every = np.arange(n)
    return folds if once else [*folds, Fold(every, every[:0], True)]


def fold_of_rows(folds: Sequence[Fold], n: int) -> Index:
    """Return the fold that each of ``n`` rows is a test row of; -1 if there is none."""
    number = np.full(n, -1)
    for k, fold in enumerate(folds):
        number[fold.test] = k
    return number


def _renumber(present: Index, rows: Index) -> Index:
    """Return the positions of ``rows`` among the rows with non-zero weight."""
    kept = np.asarray(rows)[np.isin(rows, present)]
    return np.searchsorted(present, kept)


def _splitter(count: int, positive: Any, groups: Any, seed: int) -> Any:
    """Return a splitter with ``count`` folds, or fewer if a class is too small."""
    units = np.arange(len(positive)) if groups is None else np.asarray(groups)
    fewest = min(len(np.unique(units[positive == label])) for label in (False, True))
    if fewest < 2:
        what = "rows" if groups is None else "groups"
        raise ValueError(
            f"Cross-fitting needs two {what} of each class, but a class has "
            f"n_samples=1 of {len(positive)}; use BAM."
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    return kind(min(count, fewest), shuffle=True, random_state=seed)


def crossfit(
    members: Sequence[Member],
    rows: TrainingRows,
    rounds: Sequence[Sequence[Fold]],
    seed: int,
    budget: float | None = None,
    progress: Progress = lambda *_: None,
    n_jobs: int = 1,
) -> list[FittedMember]:
    """Fit the members to all folds of the first round.

    With a time budget in seconds, no member is started after it, except the first one,
    and boosted trees stop growing. Further rounds follow if they would end in time.
    """
    boosted = [member for member in members if _is_boosting(member)]
    others = [member for member in members if not _is_boosting(member)]
    rows.X.make_features()
    end = np.inf if budget is None else monotonic() + budget
    fitted: dict[str, FittedMember] = {}
    for folds in rounds:
        start = monotonic()
        count = _Count(len(members) * len(folds), progress)
        boost = partial(_boost, boosted, rows, folds, seed, n_jobs, end, count)
        if budget is None and n_jobs > 1:
            with ThreadPoolExecutor(1) as pool:  # beside the other members
                trees = pool.submit(boost)
                found = _fit_others(others, rows, folds, seed, end, count)
                found = trees.result() + found
        else:
            found = boost() + _fit_others(others, rows, folds, seed, end, count)
        for new in found:
            known = fitted.get(new.name)
            fitted[new.name] = new if known is None else _merge_rounds(known, new)
        seed += len(folds)
        now = monotonic()
        if now + (now - start) > end:  # when another round would end
            break
    return list(fitted.values())


def _is_boosting(member: Member) -> bool:
    return isinstance(member.estimator, Boosting)


def _boost(
    members: Sequence[Member],
    rows: TrainingRows,
    folds: Sequence[Fold],
    seed: int,
    n_jobs: int,
    end: float,
    count: _Count,
) -> list[FittedMember]:
    """Grow boosted trees in all folds, each member for a share of the time at most."""
    found: list[FittedMember] = []
    view = rows.X.view
    for member in members:
        assert view is not None
        start = monotonic()
        if start > end and found:
            break
        models, scores = member.estimator.fit_folds(
            rows.X.columns,
            view.levels,
            rows.signed > 0.0,
            np.abs(rows.signed) if rows.weighted else None,
            [(fold.train, fold.test) for fold in folds],
            seed,
            n_jobs,
            start + _BOOSTED_SHARE * (end - start),
        )
        seconds = (monotonic() - start) / len(folds)
        parts = [
            _FoldModel(model, score, seconds, len(fold.train))
            for model, score, fold in zip(models, scores, folds, strict=True)
        ]
        found.append(_assemble(member.name, len(rows.signed), folds, parts))
        count.add(member.name, len(folds))
    return found


def _fit_others(
    members: Sequence[Member],
    rows: TrainingRows,
    folds: Sequence[Fold],
    seed: int,
    end: float,
    count: _Count,
) -> list[FittedMember]:
    """Return the members fitted to all folds; none is started after the time ``end``.

    If no model has been fitted before, the first member is fitted at any rate.
    """
    found = []
    for member in members:
        if monotonic() > end and count.done:
            break
        models = []
        for k, fold in enumerate(folds):
            models.append(_fit(member, rows, fold, seed + k))
            count.add(member.name, 1)
        found.append(_assemble(member.name, len(rows.signed), folds, models))
    return found


def _merge_rounds(first: FittedMember, second: FittedMember) -> FittedMember:
    """Merge the models of two rounds; scores are weighted by the number of models."""
    share = len(first.models) / (len(first.models) + len(second.models))
    return first._replace(
        models=first.models + second.models,
        scores=share * first.scores + (1.0 - share) * second.scores,
        seconds=first.seconds + second.seconds,
    )


def _fit(member: Member, rows: TrainingRows, fold: Fold, seed: int) -> _FoldModel:
    """Fit a member to the training rows of a fold, or to a sample of them."""
    start = monotonic()
    train = fold.train
    if len(train) > member.most_rows:
        rng = np.random.RandomState(seed)
        train = train[drawn(rows.signed[train], member.most_rows, rng)]
    estimator = seeded(member.estimator, seed)
    signed, weight = rows.signed[train], {}
    if rows.weighted:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"The member {member.name} does not support sample_weight. Fit without "
                "sample_weight, or leave this member out."
            )
        weight = {"sample_weight": np.abs(signed)}
    chosen = rows.X.take(train)
    if isinstance(estimator, TableModel):
        given = weight.get("sample_weight")
        estimator.fit_table(chosen, signed > 0.0, given)
    else:
        estimator.fit(chosen.features, signed > 0.0, **weight)
    scores = score_with(estimator, rows.X.take(fold.test))
    return _FoldModel(estimator, scores, monotonic() - start, len(train))


def _assemble(
    name: str, n: int, folds: Sequence[Fold], models: list[_FoldModel]
) -> FittedMember:
    """Return the member that consists of one model per fold."""
    total, times = np.zeros(n), np.zeros(n)
    for fold, model in zip(folds, models, strict=True):
        np.add.at(total, fold.test, model.scores)
        np.add.at(times, fold.test, 1.0)
    with np.errstate(invalid="ignore"):
        scores = total / times
    return FittedMember(
        name,
        [m.estimator for fold, m in zip(folds, models, strict=True) if fold.keep_model],
        scores,
        sum(model.seconds for model in models),
        max(model.rows for model in models),
        [m.estimator for fold, m in zip(folds, models, strict=True) if len(fold.test)],
    )


def seeded(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy with every unset ``random_state`` set to ``seed``."""
    copy = clone(estimator)
    unset = {
        key: seed
        for key, value in copy.get_params().items()
        if key.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**unset)


def score_with(model: Any, rows: TableRows) -> Float:
    """Return the model's scores, or log-odds if it has only ``predict_proba``."""
    if len(rows) > _BLOCK:
        starts = range(0, len(rows), _BLOCK)
        blocks = [rows.take(slice(start, start + _BLOCK)) for start in starts]
        return np.concatenate([score_with(model, block) for block in blocks])
    if isinstance(model, TableModel):
        return model.score_table(rows)
    return _score(model, rows.features)


def _score(model: Any, X: Any) -> Float:
    if X.shape[0] == 0:
        return np.zeros(0)
    if isinstance(model, Ranker):  # X has been validated
        return np.asarray(model.score_rows(X))
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), np.float64)
    p = np.clip(
        np.asarray(model.predict_proba(X)[:, 1], np.float64), _NEAR, 1.0 - _NEAR
    )
    return np.asarray(np.log(p / (1.0 - p)))
