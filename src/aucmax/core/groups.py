r"""Implicit steps along a few rows at a time, exact as if taken one after the other.

A step of the square loss is c = gain · (goal - w·x̃) along z = D x̃, where the goal hangs
on the mean score of the other class. It moves the weights by c z, so what the e-th row
of a group sees, its score against its goal, is known from the weights before the group
and from inner products of rows alone:

.. math:: w_e \cdot (\tilde x_e - \tilde m_e) = w_0 \cdot (\tilde x_e - \tilde m_e)
          + \sum_{i<e} c_i z_i \cdot (\tilde x_e - \tilde m_e) .

With dense rows and known moments this pays: the products of four rows do not wait for
each other, and the table is read and written once for the four.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from aucmax.core.jit import INLINE, inlined
from aucmax.core.lanes import CACHE_LINE, INDEX, LANES, Lanes, aligned, fetch
from aucmax.core.rows import CSR, Rows
from aucmax.core.table import SUM, D, Float, U, W

GROUP = 4  # rows: pairs are slower by a fifth, and eight have many more products
PACE, SIGN, PAST = range(3)  # what is planned for each row, see move_group
PLANNED = 64  # steps at most, at a time

# Room to work on a group, in rows of whole vectors: what is needed of the table, the
# centred means of the classes, and z of each row.
_W, _U, _D, _REF, _MEAN, _Z = 0, 1, 2, 3, 4, 6
_HEIGHT = _Z + GROUP


class Workplace(NamedTuple):
    """What a kernel works with beside its state; nothing in it outlasts a call."""

    plan: Float  # (3, steps) how far to go along the next rows
    seen: Float  # what the next group needs to know
    room: Float | None  # None: rows are taken one by one …
    single: bool | None  # … and otherwise this is None: code for None is not compiled


def workplace(
    X: Rows, learn: bool, hot: Float, cold: Float, ref: Float, n: Float
) -> Workplace:
    """Return a workplace for rows of this kind; ``n`` are the weights of the classes.

    Steps are planned ahead where nothing is learnt between them.
    """
    seen = np.zeros(4 * GROUP)
    if learn:
        return Workplace(np.zeros((3, 1)), seen, None, True)
    plan = np.zeros((3, PLANNED + GROUP - 1))
    if isinstance(X, CSR):
        return Workplace(plan, seen, None, True)
    d = hot.shape[1]
    room = aligned(_HEIGHT, d)
    room[_W, :d], room[_U, :d] = hot[W], cold[U]
    room[_D, :d], room[_REF, :d] = hot[D], ref
    room[_MEAN : _MEAN + 2, :d] = hot[SUM:] / n[:, np.newaxis] - ref
    return Workplace(plan, seen, room, None)


@inlined
def take_up(room: Float, hot: Float, cold: Float) -> None:
    """Copy to the room what has changed in the table."""
    for j in range(hot.shape[1]):
        room[_W, j] = hot[W, j]
        room[_U, j] = cold[U, j]


@inlined
def put_back(room: Float, hot: Float, cold: Float) -> None:
    """Write to the table what groups have changed."""
    for j in range(hot.shape[1]):
        hot[W, j] = room[_W, j]
        cold[U, j] = room[_U, j]


def look_group(
    X: Any,
    order: NDArray[np.int64],
    start: int,
    ahead: int,
    room: Float,
    plan: Float,
    first: int,
    seen: Float,
) -> None:
    """Write to ``seen`` what steps along the rows from ``order[start]`` on need.

    That is their scores w·x̃, their squared norms z·x̃, and for each row how fast the
    steps of those before it move its score against its goal. What is planned for them
    begins at place ``first`` of ``plan``. Rows ``ahead`` are asked for. A group beyond
    the end of ``order`` repeats the last row.
    """
    at = order[np.minimum(np.arange(start, start + GROUP), len(order) - 1)]
    x = np.pad(X[at], ((0, 0), (0, room.shape[1] - X.shape[1]))) - room[_REF]
    z = room[_Z:]
    z[:] = room[_D] * x
    other = np.where(plan[SIGN, first : first + GROUP] > 0.0, _MEAN + 1, _MEAN)
    against = z @ (x - room[other]).T
    pairs = [against[i, e] for e in range(GROUP) for i in range(e)]
    seen[: 2 * GROUP + len(pairs)] = [*(x @ room[_W]), *np.sum(z * x, axis=1), *pairs]


@overload(look_group, jit_options=INLINE)
def _look_group(X, order, start, ahead, room, plan, first, seen):
    return lambda X, order, start, ahead, room, plan, first, seen: _look(
        X, order, start, ahead, room, plan, first, seen
    )


def move_group(
    room: Float,
    seen: Float,
    plan: Float,
    first: int,
    a: float,
    b: float,
    implicit: bool,
) -> tuple[float, float]:
    """Take the steps of a group; return the change of the mean scores ``a``, ``b``.

    A step is c = pace · (goal - w·x̃), the weights being those before it, or after it
    if it is ``implicit``; the goal is b + 1 where the sign is 1, and a - 1 where it is
    -1. With w += c z comes the average's part, u += past · c z. A row of pace zero
    takes no step.
    """
    pace, sign, past = plan[:, first : first + GROUP]
    gain = pace / (1.0 + pace * seen[GROUP : 2 * GROUP] * implicit)
    goal = np.where(sign > 0.0, b, a) + sign
    steps = np.zeros(GROUP)
    pairs = iter(seen[2 * GROUP :])
    for e in range(GROUP):
        score = seen[e] + sum(steps[i] * next(pairs) for i in range(e))
        steps[e] = gain[e] * (goal[e] - score)
    move = steps @ room[_Z:]
    room[_W] += move
    room[_U] += (past * steps) @ room[_Z:]
    return float(move @ room[_MEAN]), float(move @ room[_MEAN + 1])


@overload(move_group, jit_options=INLINE)
def _move_group(room, seen, plan, first, a, b, implicit):
    return lambda room, seen, plan, first, a, b, implicit: _move(
        room, seen, plan, first, a, b, 1.0 if implicit else 0.0
    )


class _Array:
    """An argument of an intrinsic: an array without gaps, of one or two dimensions."""

    def __init__(self, context: Any, builder: Any, kind: Any, argument: Any) -> None:
        array = context.make_array(kind)(context, builder, argument)
        self.builder, self.data = builder, array.data
        self.shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)

    def row(self, row: Any) -> Any:
        """Return where a row begins."""
        row = INDEX(row) if isinstance(row, int) else row
        return self.builder.gep(self.data, [self.builder.mul(row, self.shape[1])])


def _arrays(context, builder, signature, args):
    """Return the arguments, the arrays among them as such."""
    return [
        _Array(context, builder, kind, argument)
        if isinstance(kind, types.Array)
        else argument
        for kind, argument in zip(signature.args, args, strict=True)
    ]


def _number(builder, place, at):
    """Return the number ``at`` places from where ``place`` points to."""
    at = INDEX(at) if isinstance(at, int) else at
    return builder.load(builder.gep(place, [at]))


@intrinsic
def _look(typing_context, X, order, start, ahead, room, plan, first, seen):
    """``look_group``, compiled."""
    whole = types.int64
    signature = types.void(X, order, whole, whole, room, plan, whole, seen)

    def emit(context, builder, signature, args):
        lanes = Lanes(builder)
        X, order, start, ahead, room, plan, first, seen = _arrays(
            context, builder, signature, args
        )
        last = builder.sub(order.shape[0], INDEX(1))

        def row_at(place):
            within = builder.icmp_signed("<", place, last)
            place = builder.select(within, place, last)
            return X.row(_number(builder, order.data, place))

        rows = [row_at(builder.add(start, INDEX(e))) for e in range(GROUP)]
        # Rows in a run are next to each other, and the next group is in one piece.
        coming = row_at(builder.add(start, ahead))
        signs = builder.gep(plan.row(SIGN), [first])
        means = []
        for e in range(GROUP):
            positive = _is_positive(builder, _number(builder, signs, e))
            other = builder.select(positive, INDEX(_MEAN + 1), INDEX(_MEAN))
            means.append(room.row(other))
        z = [room.row(_Z + e) for e in range(GROUP)]
        table = [room.row(slot) for slot in (_W, _D, _REF)]
        scores = [lanes.sum() for _ in range(GROUP)]
        norms = [lanes.sum() for _ in range(GROUP)]
        pairs = [[lanes.sum() for _ in range(e)] for e in range(GROUP)]
        bits = signature.args[0].dtype.bitwidth

        def visit(j, mask):
            w, scale, ref = (lanes.load(slot, j) for slot in table)
            offset = builder.mul(j, INDEX(GROUP * bits // 8))
            for line in range(0, GROUP * LANES * bits // 8, CACHE_LINE):
                fetch(builder, coming, builder.add(offset, INDEX(line)), near=2)
            along = []
            for e in range(GROUP):
                x = builder.fsub(lanes.load(rows[e], j, mask, bits), ref)
                along.append(builder.fmul(scale, x))
                lanes.store(along[e], z[e], j)
                scores[e].add(w, x)
                norms[e].add(along[e], x)
                if e > 0:
                    x = builder.fsub(x, lanes.load(means[e], j))
                for i in range(e):
                    pairs[e][i].add(along[i], x)

        lanes.masked_loop(X.shape[1], visit)
        sums = [*scores, *norms, *(pair for some in pairs for pair in some)]
        for k, vector in enumerate(lanes.totals(sums)):
            lanes.store(vector, seen.data, INDEX(k * LANES))
        return context.get_dummy_value()

    return signature, emit


@intrinsic
def _move(typing_context, room, seen, plan, first, a, b, implicit):
    """``move_group``, compiled; ``implicit`` is one or zero."""
    one = types.float64
    kinds = (room, seen, plan, types.int64, one, one, one)
    signature = types.UniTuple(one, 2)(*kinds)

    def emit(context, builder, signature, args):
        lanes = Lanes(builder)
        room, seen, plan, first, a, b, implicit = _arrays(
            context, builder, signature, args
        )
        planned = [builder.gep(plan.row(k), [first]) for k in (PACE, SIGN, PAST)]
        pair = 2 * GROUP
        steps: list[Any] = []
        pasts: list[Any] = []
        for e in range(GROUP):
            pace, sign, past = (_number(builder, slot, e) for slot in planned)
            damping = builder.fmul(pace, _number(builder, seen.data, GROUP + e))
            damping = builder.fadd(sign.type(1.0), builder.fmul(implicit, damping))
            gain = builder.fdiv(pace, damping)
            other = builder.select(_is_positive(builder, sign), b, a)
            goal = builder.fadd(other, sign)
            # The next step waits for one product of this one only.
            c = builder.fsub(goal, _number(builder, seen.data, e))
            c = builder.fmul(gain, c)
            for i in range(e):
                share = builder.fmul(gain, _number(builder, seen.data, pair))
                product = builder.fmul(share, steps[i], flags=["contract"])
                c = builder.fsub(c, product, flags=["contract"])
                pair += 1
            steps.append(c)
            pasts.append(builder.fmul(past, c))
        steps = [lanes.spread(c) for c in steps]
        pasts = [lanes.spread(c) for c in pasts]
        w, u = room.row(_W), room.row(_U)
        means = [room.row(_MEAN), room.row(_MEAN + 1)]
        z = [room.row(_Z + e) for e in range(GROUP)]
        changes = [lanes.sum(), lanes.sum()]

        def visit(j):
            along = [lanes.load(row, j) for row in z]
            move = builder.fmul(steps[0], along[0])
            behind = lanes.plus_product(lanes.load(u, j), pasts[0], along[0])
            for e in range(1, GROUP):
                move = lanes.plus_product(move, steps[e], along[e])
                behind = lanes.plus_product(behind, pasts[e], along[e])
            lanes.store(builder.fadd(lanes.load(w, j), move), w, j)
            lanes.store(behind, u, j)
            for change, mean in zip(changes, means, strict=True):
                change.add(move, lanes.load(mean, j))

        lanes.loop(room.shape[1], visit)
        [total] = lanes.totals(changes)
        places = (ir.IntType(32)(k) for k in range(2))
        numbers = [builder.extract_element(total, place) for place in places]
        return cgutils.pack_array(builder, numbers)

    return signature, emit


def _is_positive(builder, number):
    return builder.fcmp_ordered(">", number, number.type(0.0))
