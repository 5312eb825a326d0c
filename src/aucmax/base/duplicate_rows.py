"""Equal rows: which there are, whether they are copies, and folds that keep them.

A copy of a test row among the training rows makes any model look good that remembers
rows: copies belong in one fold. But equal rows need not be copies. Where columns have
few values, they are separate observations, new rows will equal old ones too, and folds
of rows are right. Labels tell: copies have one label, separate observations differ.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from aucmax.core.row_hashes import row_hashes

Index = NDArray[np.int64]

_APART = 0.1  # equal rows whose labels differ so often, chance being 1, are no copies


class Repeats(NamedTuple):
    """Equal rows."""

    of: Index  # (n,) the number of the distinct row that each row equals, as they come
    repeated: int  # rows that equal an earlier one
    copies: bool  # whether they look like copies; or like separate observations

    @classmethod
    def among(cls, X: Any, positive: NDArray[np.bool_]) -> "Repeats":
        """Look for equal rows, dense or CSR."""
        _, first, of = np.unique(row_hashes(X), return_index=True, return_inverse=True)
        number = np.empty(len(first), np.int64)
        number[np.argsort(first)] = np.arange(len(first))
        of, repeated = number[of], len(positive) - len(first)
        return cls(of, repeated, repeated > 0 and _differ(of, positive) < _APART)


def _differ(of: Index, positive: NDArray[np.bool_]) -> float:
    """Return how often labels of equal rows differ, over how often by chance."""
    times, tops = np.bincount(of), np.bincount(of, positive)
    several = times > 1
    times, tops = times[several], tops[several]
    # For each row the share of its equals that have the other label; mean over rows.
    differ = float(np.sum(2.0 * tops * (times - tops) / (times - 1))) / times.sum()
    rate = tops.sum() / times.sum()
    by_chance = 2.0 * rate * (1.0 - rate)
    return differ / by_chance if by_chance else 0.0


def dealt(
    count: int,
    positive: NDArray[np.bool_],
    of: Index,
    seed: int | None = None,
    times: int = 1,
) -> list[tuple[Index, Index]] | None:
    """Return (train, test) of at most ``count`` folds that keep equal rows together.

    Folds are those of the distinct rows alone, shuffled by a seed if there is one, and
    dealt so many ``times``. None if a class has a single distinct row.
    """
    above = np.bincount(of, positive) > 0.0
    count = min(count, int(above.sum()), int((~above).sum()))
    if count < 2:
        return None
    kind = StratifiedKFold(count, shuffle=seed is not None, random_state=seed)
    if times > 1:
        kind = RepeatedStratifiedKFold(
            n_splits=count, n_repeats=times, random_state=seed
        )
    found = []
    for _, test in kind.split(np.zeros(len(above)), above):
        here = np.isin(np.arange(len(above)), test)[of]
        found.append((np.flatnonzero(~here), np.flatnonzero(here)))
    return found
