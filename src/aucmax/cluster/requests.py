"""What solvers ask of rows that are on the workers, and how a worker answers.

A worker shows its rows to each request, a piece at a time: with their scores for w, and
for v if there is one, and their shares. Several requests have X read once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.cluster.areas import Pile, counted
from aucmax.cluster.blocks import Block
from aucmax.cluster.folds import fold_of
from aucmax.cluster.pairs import LOSSES, Field, Seen, Sight
from aucmax.cluster.passes import over
from aucmax.core.jit import kernel
from aucmax.core.rows import Float


class Rows(NamedTuple):
    """Which rows count, all or all but a fold, and the weight of each class."""

    weight: Float  # (2,) positives first
    fold: int = -1
    n_folds: int = 1


class Look(NamedTuple):
    """Asks for the loss at w."""

    rows: Rows
    loss: str
    w: Float
    level: int

    def begin(self) -> Sight:
        """Return the answer of no rows."""
        return Sight(LOSSES[self.loss], self.level)

    def see(self, sight: Sight, scores: Float, share: Float, signed: Float) -> None:
        """Take note of some rows."""
        sight.add(scores[0], share)

    def end(self, sight: Sight) -> Seen:
        """Return what adds up to the answer of all rows."""
        return sight.seen()


class Weigh(NamedTuple):
    """Asks for the sums of a product with v."""

    rows: Rows
    loss: str
    w: Float
    field: Field
    v: Float

    def begin(self) -> Float:
        """Return the answer of no rows."""
        return LOSSES[self.loss].nothing(self.field)

    def see(self, sums: Float, scores: Float, share: Float, signed: Float) -> None:
        """Take note of some rows."""
        LOSSES[self.loss].weigh(self.field, scores[0], share, scores[1], sums)

    def end(self, sums: Float) -> Float:
        """Return what adds up to the answer of all rows."""
        return sums


class Judge(NamedTuple):
    """Asks for the scores of w in the fold, or how many rows are in cells of them."""

    rows: Rows
    w: Float
    centre: float
    unit: float
    exact: bool

    def begin(self) -> list[Pile]:
        """Return the answer of no rows."""
        return [Pile(np.empty((1, 0)), np.empty(0))]

    def see(
        self, piles: list[Pile], scores: Float, share: Float, signed: Float
    ) -> None:
        """Take note of some rows."""
        here = np.flatnonzero(share == 0.0)
        piles.append(Pile(scores[:, here], signed[here]))

    def end(self, piles: list[Pile]) -> Any:
        """Return what adds up to the answer of all rows."""
        scores = np.concatenate([pile.scores for pile in piles], axis=1)
        signed = np.concatenate([pile.signed for pile in piles])
        ends = np.array([self.centre]), np.array([self.unit])
        return counted(scores, signed, *ends, self.exact)


class Moment(NamedTuple):
    """Asks for the first two moments of the scores of w, classes balanced."""

    rows: Rows
    w: Float

    def begin(self) -> Float:
        """Return the answer of no rows."""
        return np.zeros(2)

    def see(self, sums: Float, scores: Float, share: Float, signed: Float) -> None:
        """Take note of some rows."""
        weight = 0.5 * np.abs(share)
        sums += weight @ scores[0], weight @ scores[0] ** 2

    def end(self, sums: Float) -> Float:
        """Return what adds up to the answer of all rows."""
        return sums


class Back(NamedTuple):
    """Asks for the gradient at w, or for the Hessian there times v: some Xᵀ u."""

    rows: Rows
    loss: str
    w: Float
    field: Field
    v: Float | None = None
    across: Any = None

    def slopes(self, scores: Float, share: Float, u: Float) -> None:
        """Set ``u`` to what rows are multiplied with."""
        loss = LOSSES[self.loss]
        if self.v is None:
            loss.slope(self.field, scores[0], share, u)
        else:
            loss.product(self.field, self.across, scores[0], share, scores[1], u)


@kernel
def _shares(
    signed: Float, weight: Float, fold: NDArray[np.int64], out: int, share: Float
) -> None:
    """Set ``share`` to weights as shares of their class, signed; zero if folded out."""
    for i in range(signed.shape[0]):
        share[i] = signed[i] / (weight[0] if signed[i] > 0.0 else weight[1])
    for i in range(fold.shape[0]):
        if fold[i] == out:
            share[i] = 0.0


_NO_FOLDS = np.zeros(0, np.int64)


def _vectors(request: Any) -> list[Float]:
    v = getattr(request, "v", None)
    return [request.w] if v is None else [request.w, v]


def answered(block: Block, requests: list[Any]) -> list[Any]:
    """Return what a block adds to the answer of each request; X is read once."""
    vectors = [_vectors(request) for request in requests]
    ends = np.cumsum([0, *map(len, vectors)])
    back = [k for k, request in enumerate(requests) if isinstance(request, Back)]
    answers = [None if k in back else r.begin() for k, r in enumerate(requests)]
    room = np.empty(0)

    def see(S: Float, U: Float, start: int, stop: int) -> None:
        """Take note of some rows."""
        nonlocal room
        if len(room) < stop - start:
            room = np.empty(stop - start)
        share, signed, fold = room[: stop - start], block.signed[start:stop], _NO_FOLDS
        each = iter(U)
        for k, request in enumerate(requests):
            rows, scores = request.rows, S[ends[k] : ends[k + 1]]
            if rows.fold >= 0 and not len(fold):  # the same for all solvers
                fold = fold_of(block.places(start, stop), rows.n_folds)
            some = fold if rows.fold >= 0 else _NO_FOLDS
            _shares(signed, rows.weight, some, rows.fold, share)
            if isinstance(request, Back):
                request.slopes(scores, share, next(each))
            else:
                request.see(answers[k], scores, share, signed)

    with np.errstate(over="ignore", invalid="ignore"):  # steps may be too long
        W = np.array([v for some in vectors for v in some])
        found = iter(over(block, W, len(back), see))
        return [
            next(found) if k in back else request.end(answers[k])
            for k, request in enumerate(requests)
        ]
