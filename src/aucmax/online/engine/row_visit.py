"""The verbs of a kernel: learn from a row, apply the penalty when due."""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from aucmax.base.class_moments import NEG, POS
from aucmax.core.jit import INLINE, inlined, kernel
from aucmax.core.jit import uniquely_named as told_apart
from aucmax.core.rows import Float, Rows
from aucmax.online.engine.centred_rows import (
    Known,
    Stream,
    Visit,
    count_in,
    dot_row,
    list_features,
    rescale_row,
)
from aucmax.online.engine.feature_table import (
    DUE,
    HARDEST,
    L2,
    NO_PENALTY,
    RENEW_AT,
    ROWS,
    SINCE,
    TO_MEAN,
    Table,
    W,
    penalise,
    refresh,
    take_rates,
)

_STRETCH = 256  # steps at least, d at most, between two proximal maps
_MOST = 0.5  # of the penalty's curvature falls due at once


class News(NamedTuple):
    """What a row has changed by being counted."""

    ready: bool  # both classes have been seen
    stale: bool  # it is time to ``renew`` all reference points and scales
    score: float  # w·x̃ of the row, before
    share: float  # of the row in the weight of its class
    d_a: float  # by how much new scales change the mean scores of the classes …
    d_b: float
    d_squares: float  # … Σ w²/D …
    d_absolute: float  # … and Σ |w|/√D


def visit(
    X: Rows, table: Table, learn: bool, precondition: bool, l2: L2 = NO_PENALTY
) -> Any:
    """Return how a kernel is to visit the rows of X with this table."""
    d, centred = len(table.ref), np.flatnonzero(table.ref)
    listed = np.zeros(d + 1, np.uint32)
    listed[0], listed[1 : 1 + len(centred)] = len(centred), centred
    kind = Stream if learn else Known
    stretch = float(max(_STRETCH, d))
    return kind(bool(precondition), False, l2, stretch, _MOST, listed)


@inlined
def weight_of(y: Float, i: int, table: Table) -> float:
    """Return the weight of row ``i``, in units of the mean weight."""
    return abs(y[i]) * table.stats[TO_MEAN]


@inlined
def class_of(y_i: float) -> int:
    """Return POS or NEG."""
    return int(y_i < 0.0)


def if_stream(learnt: Any, known: Any) -> Any:
    """Return one function of two: for streams, and for rows whose statistics are known.

    The last argument, ``how``, says which; the other one is not compiled.
    """
    learnt, known = told_apart(learnt, "learnt"), told_apart(known, "known")

    def either(*args):
        return (learnt if isinstance(args[-1], Stream) else known)(*args)

    @overload(either, jit_options=INLINE, strict=False)
    def _pick(*args):
        return learnt if args[-1].instance_class is Stream else known

    return either


# A branch in what is compiled into a kernel would count references at every row (see
# CONTRIBUTING, traps). So there is none below, and kernels ask themselves whether to
# renew.


@inlined
def _count(X, y, i, table, how):
    """Count row ``i`` in; return whether both classes have been seen."""
    n = table.n
    weight, side = abs(y[i]), class_of(y[i])
    table.stats[ROWS] += 1.0
    n[side] += weight
    count_in(X, i, weight, side, table, how)
    take_rates(table)
    return (n[POS] > 0.0) & (n[NEG] > 0.0)


def _learn(X, y, i, table, how):
    """Count row ``i`` in, and let the scales of its features follow."""
    score = dot_row(X, i, table.feat, W, table.ref, how.listed)
    ready = _count(X, y, i, table, how)
    n, stats = table.n, table.stats
    share = abs(y[i]) / n[class_of(y[i])]
    d_a, d_b, d_squares, d_absolute = rescale_row(
        X, i, table, how, 0.5 * share, ready & how.precondition
    )
    stale = stats[ROWS] >= stats[RENEW_AT]
    return News(ready, stale, score, share, d_a, d_b, d_squares, d_absolute)


@kernel
def _renew(table: Table, how: Visit) -> float:
    """Take all reference points and scales anew; return by how much scores shift."""
    if table.stats[DUE] > 0.0:
        settle(table, how)
    shift = refresh(table, how.l2, how.precondition)
    list_features(table.ref, how.listed)
    return shift


# Of known statistics there is nothing to count, no news, and nothing to renew.
count = if_stream(_count, lambda X, y, i, table, how: False)
learn = if_stream(
    _learn,
    lambda X, y, i, table, how: News(True, False, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
)
renew = if_stream(lambda table, how: _renew(table, how), lambda table, how: 0.0)


@inlined
def mean_scores(news: News, y_i: float, a: float, b: float) -> tuple[float, float]:
    """Return the mean scores of the classes, once a row is counted."""
    a += news.d_a + (news.share * (news.score - a) if y_i > 0.0 else 0.0)
    b += news.d_b + (news.share * (news.score - b) if y_i < 0.0 else 0.0)
    return a, b


@inlined
def falls_due(table: Table, how: Visit, eta: float) -> bool:
    """Put the penalty of a step off, and return whether to ``settle`` what is due."""
    stats = table.stats
    stats[DUE] += eta
    stats[SINCE] += 1.0
    much = stats[DUE] * stats[HARDEST] > how.most
    return much | (stats[SINCE] >= how.stretch)


@inlined
def settle(table: Table, how: Visit) -> None:
    """Apply the penalty that is due: to a stretch of steps at once, in O(1) a step."""
    penalise(table, how.l2, table.stats[DUE])
    table.stats[DUE] = table.stats[SINCE] = 0.0
