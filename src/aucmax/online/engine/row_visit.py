"""Visiting a row: count it, update scales, apply the penalty when it is due."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import INLINE, inlined, kernel, uniquely_named
from aucmax.core.rows import Rows
from aucmax.online.engine.centred_rows import (
    Known,
    Stream,
    Visit,
    count_in,
    list_features,
    rescale_row,
    score_row,
)
from aucmax.online.engine.feature_table import (
    DUE,
    HARDEST,
    L2,
    NO_PENALTY,
    ROWS,
    SINCE,
    Table,
    penalise,
    refresh,
    update_rates,
)
from aucmax.online.engine.statistics import clear_penalty, is_stale, penalty_due

_STRETCH = 256  # steps between two proximal maps; d if that is more
_MOST = 0.5  # largest λ_j D_j η that may be due


class News(NamedTuple):
    """Changes made by counting a row."""

    ready: bool  # both classes have been seen
    stale: bool  # it is time to ``renew`` reference points and scales
    score: float  # w·x̃ of the row, before it was counted
    share: float  # fraction of the weight of its class
    d_a: float  # change of the mean score of the positives, by new scales
    d_b: float  # the same for the negatives
    d_squares: float  # change of Σ w²/D
    d_absolute: float  # change of Σ |w|/√D


def visit(
    X: Rows, table: Table, learn: bool, precondition: bool, l2: L2 = NO_PENALTY
) -> Any:
    """Return how a kernel visits the rows of X; ``learn`` their statistics too."""
    d, centred = len(table.ref), np.flatnonzero(table.ref)
    listed = np.zeros(d + 1, np.uint32)
    listed[0], listed[1 : 1 + len(centred)] = len(centred), centred
    kind = Stream if learn else Known
    stretch = float(max(_STRETCH, d))
    return kind(bool(precondition), False, l2, stretch, _MOST, listed)


@inlined
def class_of(y_i: float) -> int:
    """Return POS or NEG."""
    return int(y_i < 0.0)


def if_stream(learnt: Any, known: Any) -> Any:
    """Return a function that calls ``learnt`` if its last argument is a Stream."""
    learnt, known = uniquely_named(learnt, "learnt"), uniquely_named(known, "known")

    def either(*args):
        return (learnt if isinstance(args[-1], Stream) else known)(*args)

    @overload(either, jit_options=INLINE, strict=False)
    def _pick(*args):
        return learnt if args[-1].instance_class is Stream else known

    return either


# No branches below: inlined into a kernel they would count references at every row (see
# CONTRIBUTING, traps). Kernels themselves test whether to renew.


@inlined
def _count(X, y, i, table, how):
    """Count row ``i``; return whether both classes have been seen."""
    n = table.n
    weight, side = abs(y[i]), class_of(y[i])
    table.stats[ROWS] += 1.0
    n[side] += weight
    count_in(X, i, weight, side, table, how)
    update_rates(table)
    return (n[POS] > 0.0) & (n[NEG] > 0.0)


def _learn(X, y, i, table, how):
    """Count row ``i`` and update the scales of its features."""
    score = score_row(X, i, table, how)
    ready = _count(X, y, i, table, how)
    share = abs(y[i]) / table.n[class_of(y[i])]
    d_a, d_b, d_squares, d_absolute = rescale_row(
        X, i, table, how, 0.5 * share, ready & how.precondition
    )
    return News(ready, is_stale(table), score, share, d_a, d_b, d_squares, d_absolute)


@kernel
def _renew(table: Table, how: Visit) -> float:
    """Recompute reference points and scales; return by how much scores shift."""
    if penalty_due(table) > 0.0:
        settle(table, how)
    shift = refresh(table, how.l2, how.precondition)
    list_features(table.ref, how.listed)
    return shift


# With known statistics there is nothing to count or to renew.
count = if_stream(_count, lambda X, y, i, table, how: False)
learn = if_stream(
    _learn, lambda X, y, i, table, how: News(True, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
)
renew = if_stream(lambda table, how: _renew(table, how), lambda table, how: 0.0)


@inlined
def mean_scores(news: News, y_i: float, a: float, b: float) -> tuple[float, float]:
    """Return the mean scores of the classes after a row was counted."""
    a += news.d_a + (news.share * (news.score - a) if y_i > 0.0 else 0.0)
    b += news.d_b + (news.share * (news.score - b) if y_i < 0.0 else 0.0)
    return a, b


@inlined
def falls_due(table: Table, how: Visit, eta: float) -> bool:
    """Defer the penalty of a step; return whether to ``settle`` now."""
    stats = table.stats
    stats[DUE] += eta
    stats[SINCE] += 1.0
    much = stats[DUE] * stats[HARDEST] > how.most
    return much | (stats[SINCE] >= how.stretch)


@inlined
def settle(table: Table, how: Visit, l1: float = 0.0) -> None:
    """Apply the penalty that is due, O(d); it amortises to O(1) a step."""
    penalise(table, how.l2, penalty_due(table), l1)
    clear_penalty(table)
