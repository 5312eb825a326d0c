"""Members of a blend, fitted so that each row is scored by models that never saw it.

Where every row is left out once, as by folds, the models of the folds are the member:
the mean of their scores. Where some rows never are, as by splits along time, scores
come from the splits, and the member is fitted once more, to all rows.

Models are fitted one after the other, each on all cores: side by side, small ones would
spend their time waiting for Python's lock.
"""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils.validation import has_fit_parameter

from aucmax.base.duplicate_rows import Repeats, dealt
from aucmax.base.folds import drawn
from aucmax.base.ranker import Ranker
from aucmax.blend.trees import log_odds_of
from aucmax.core.rows import Float, Index

Tell = Callable[[str, int, int], None]  # a member, and how many models of all are done

_WARM, _FEW, _SOME = 250, 1000, 2500  # rows, to see how long a member takes
_PROBING = 0.25  # of the time, for that
_FEWEST = 300  # rows that are worth learning from
_PLANNED = 0.8  # of the time: nobody can tell so exactly how long a fit takes


class Member(NamedTuple):
    """A name, and an estimator that has learnt nothing."""

    name: str
    estimator: Any


class Rows(NamedTuple):
    """What there is to learn from."""

    X: Any
    signed: Float  # weights, negative for the negatives
    weighted: bool  # or all weights are one


class Cost(NamedTuple):
    """What a member takes, in seconds; it nearly grows as the rows do for all."""

    fixed: float
    each: float  # for each row

    def of(self, n: int) -> float:
        """Return the seconds for so many rows."""
        return self.fixed + self.each * n


class Part(NamedTuple):
    """A model to be fitted."""

    train: Index
    test: Index  # rows that it is to score
    kept: bool  # whether it is to score any others


class Fitted(NamedTuple):
    """A member that has been cross-fitted."""

    name: str
    models: list[Any]  # whose mean is its score
    scores: Float  # (n,) of rows by models that never saw them; NaN if there is none
    seconds: float
    rows: int  # that a model has learnt from, at most


class _Model(NamedTuple):
    """A model that has been fitted."""

    estimator: Any
    scores: Float  # of the rows that were left out
    seconds: float
    rows: int


def deal(
    cv: Any, signed: Float, groups: Any, seed: int, equal: Repeats | None = None
) -> list[Part]:
    """Return the models that a member is made of, their rows counted among those there.

    A row of weight zero is not there; splits that a user gives count it. Copies of a
    row are in one fold, if a user gives neither splits nor groups.
    """
    present = np.flatnonzero(signed)
    positive, n = signed[present] > 0.0, len(present)
    splits = None
    if isinstance(cv, int | np.integer) and groups is None and equal and equal.copies:
        splits = dealt(int(cv), positive, equal.of, seed)
    if splits is not None:
        pass
    elif isinstance(cv, int | np.integer):
        own = None if groups is None else groups[present]
        folds = _folds(int(cv), positive, own, seed)
        splits = list(folds.split(np.zeros(n), positive, own))
    else:
        splitter = check_cv(cv, signed > 0.0, classifier=True)
        found = splitter.split(np.zeros(len(signed)), signed > 0.0, groups)
        splits = [(_among(present, a), _among(present, b)) for a, b in found]
    for part, (train, test) in enumerate(splits):
        for some, what in ((train, "learn from"), (test, "score")):
            if positive[some].all() or not positive[some].any():
                raise ValueError(f"Split {part} of cv has rows of one class to {what}.")
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    once = bool((times == 1).all())
    parts = [Part(train, test, once) for train, test in splits]
    every = np.arange(n)
    return parts if once else [*parts, Part(every, every[:0], True)]


def parted(parts: Sequence[Part], equal: Repeats) -> int:
    """Return how many rows are scored by a model that has learnt from an equal row."""
    count = 0
    for part in parts:
        learnt = np.zeros(len(equal.of), np.bool_)
        learnt[equal.of[part.train]] = True
        count += int(np.count_nonzero(learnt[equal.of[part.test]]))
    return count


def _among(present: Index, rows: Index) -> Index:
    """Return the places of rows among those that are there."""
    found = np.asarray(rows)[np.isin(rows, present)]
    return np.searchsorted(present, found)


def _folds(count: int, positive: Any, groups: Any, seed: int) -> Any:
    """Return what deals so many folds, or fewer if a class does not fill them."""
    units = np.arange(len(positive)) if groups is None else np.asarray(groups)
    few = min(len(np.unique(units[positive == side])) for side in (False, True))
    if few < 2:
        what = "rows" if groups is None else "groups"
        raise ValueError(
            f"Cross-fitting needs two {what} of each class, but a class has "
            f"n_samples=1 of {len(positive)}; use BAM."
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    return kind(min(count, few), shuffle=True, random_state=seed)


def crossfit(
    team: Sequence[Member],
    rows: Rows,
    rounds: Sequence[Sequence[Part]],
    seed: int,
    budget: float | None = None,
    tell: Tell = lambda *_: None,
) -> list[Fitted]:
    """Return the members, fitted to the parts of the first round.

    With a budget of seconds, slow ones learn from some of the rows, and those that the
    time does not suffice for are not there; while there is time, more rounds follow.
    """
    begun, n = monotonic(), len(rows.signed)
    sizes, end = [n] * len(team), np.inf
    if budget is not None:
        end = begun + budget
        costs: list[Cost | None] = []
        for member in team:  # of some, not even that is known in time
            late = monotonic() > begun + _PROBING * budget and costs
            costs.append(None if late else _cost(member, rows, rounds[0]))
        most = max(len(part.train) for part in rounds[0])
        sizes = affordable(costs, most, _PLANNED * (end - monotonic()))
    found: dict[str, Fitted] = {}
    for parts in rounds:
        start = monotonic()
        for fitted in _round(team, rows, parts, sizes, seed, end, tell):
            known = found.get(fitted.name)
            found[fitted.name] = fitted if known is None else _merged(known, fitted)
        seed += len(parts)
        if monotonic() + (monotonic() - start) / _PLANNED > end:
            break
    return list(found.values())


def _round(
    team: Sequence[Member],
    rows: Rows,
    parts: Sequence[Part],
    sizes: Sequence[int],
    seed: int,
    end: float,
    tell: Tell,
) -> list[Fitted]:
    """Return the members that could be fitted to all parts before the end."""
    jobs = [(j, k) for j, size in enumerate(sizes) if size for k in range(len(parts))]

    models: list[list[_Model]] = [[] for _ in team]
    for done, (j, k) in enumerate(jobs):
        if monotonic() > end and j != jobs[0][0]:  # without one, there is nothing
            break
        models[j].append(_fit(team[j], rows, parts[k], sizes[j], seed + k))
        tell(team[j].name, done + 1, len(jobs))
    whole = [j for j, some in enumerate(models) if len(some) == len(parts)]
    return [_gathered(team[j].name, len(rows.signed), parts, models[j]) for j in whole]


def _merged(first: Fitted, second: Fitted) -> Fitted:
    """Return a member of two rounds; rounds count by their models."""
    share = len(first.models) / (len(first.models) + len(second.models))
    return first._replace(
        models=first.models + second.models,
        scores=share * first.scores + (1.0 - share) * second.scores,
        seconds=first.seconds + second.seconds,
    )


def _fit(member: Member, rows: Rows, part: Part, size: int, seed: int) -> _Model:
    """Return a member, fitted to at most ``size`` of the rows of a part."""
    start = monotonic()
    train = part.train
    if len(train) > size:
        rng = np.random.RandomState(seed)
        train = train[drawn(rows.signed[train], size, rng)]
    estimator = seeded(member.estimator, seed)
    signed, weight = rows.signed[train], {}
    if rows.weighted:
        if not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"The member {member.name} cannot learn from weighted rows."
            )
        weight = {"sample_weight": np.abs(signed)}
    estimator.fit(rows.X[train], signed > 0.0, **weight)
    scores = scores_of(estimator, rows.X[part.test])
    return _Model(estimator, scores, monotonic() - start, len(train))


def _gathered(name: str, n: int, parts: Sequence[Part], models: list[_Model]) -> Fitted:
    total, times = np.zeros(n), np.zeros(n)
    for part, model in zip(parts, models, strict=True):
        np.add.at(total, part.test, model.scores)
        np.add.at(times, part.test, 1.0)
    with np.errstate(invalid="ignore"):
        scores = total / times
    return Fitted(
        name,
        [m.estimator for part, m in zip(parts, models, strict=True) if part.kept],
        scores,
        sum(model.seconds for model in models),
        max(model.rows for model in models),
    )


def seeded(estimator: Any, seed: int) -> Any:
    """Return a copy that has learnt nothing, and that draws by a seed."""
    copy = clone(estimator)
    unset = {
        key: seed
        for key, value in copy.get_params().items()
        if key.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**unset)


def scores_of(model: Any, X: Any) -> Float:
    """Return the scores of rows, log-odds of those that have only probabilities."""
    if X.shape[0] == 0:
        return np.zeros(0)
    if isinstance(model, Ranker):  # X has been validated
        return np.asarray(model.score_rows(X))
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), np.float64)
    return log_odds_of(model.predict_proba(X)[:, 1])


def _cost(member: Member, rows: Rows, parts: Sequence[Part]) -> Cost:
    """Return how many seconds a member will take, by fits to few rows."""
    seconds = [
        _fit(member, rows, Part(parts[0].train, parts[0].test[:size], False), size, 0)
        for size in (_WARM, _FEW, _SOME)  # the first one gets things going
    ][1:]
    few, some = seconds
    each = max(some.seconds - few.seconds, 0.0) / max(some.rows - few.rows, 1)
    fixed = max(few.seconds - each * few.rows, 0.0)
    return Cost(len(parts) * fixed, len(parts) * each)


def affordable(costs: Sequence[Cost | None], n: int, seconds: float) -> list[int]:
    """Return how many of ``n`` rows each member can learn from; zero if too few.

    Each has an equal share of the time; what cheap ones leave goes to the others.
    """
    sizes = [0] * len(costs)
    known = [(cost.of(n), j, cost) for j, cost in enumerate(costs) if cost is not None]
    for place, (whole, j, cost) in enumerate(sorted(known)):
        share = max(seconds, 0.0) / (len(known) - place)
        size = n
        if whole > share:
            size = int((share - cost.fixed) / cost.each) if cost.each else 0
        if place == 0:  # without one, there is nothing
            size = max(size, min(n, _FEWEST))
        if size >= min(_FEWEST, n):
            sizes[j] = size
            seconds -= cost.of(size)
    return sizes
