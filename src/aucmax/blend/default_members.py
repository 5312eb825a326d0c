"""Members of a blend: the defaults, and the members that a user gives."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aucmax.blend.boosting import Boosting
from aucmax.blend.crossfit import Member
from aucmax.blend.target_encoded import TargetEncoded
from aucmax.blend.trees import RandomizedTrees
from aucmax.kernel.kernel_cv import KernelAUCCV
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC

MANY_ROWS = 100_000  # beyond, fewer folds and members
_FEW_ROWS = 3_000


def default_team(levels: NDArray[np.int64] | None, n_rows: int) -> list[Member]:
    """Return the default members.

    ``levels`` has the number of codes of each column, 0 for numbers; None for wide
    sparse rows. The members were chosen on the data of docs/tables.md.
    """
    linear = Member("linear", BAMCV())
    if levels is None:
        return [Member("linear, square loss", LeastSquaresAUC()), linear]
    trees = _trees(n_rows)
    boosted = Member("boosted trees", trees)
    if levels.any():
        linear = Member("linear", TargetEncoded(BAMCV()))
    if n_rows > MANY_ROWS:
        return [boosted, linear]
    if not levels.any():
        return [
            boosted,
            Member("boosted trees, random thresholds", _random_thresholds(trees)),
            linear,
            Member("randomised trees", RandomizedTrees()),
            Member("kernel", KernelAUCCV(cv=3, fallback=False)),
        ]
    small = replace(trees, learning_rate=0.05, max_leaves=7, feature_share=0.2)
    pairs = replace(small, native_up_to=0, encode_above=2, pairs=36)
    by_sets = replace(trees, encode_above=int(levels.max()))
    several = (levels > trees.encode_above).any()
    return [
        boosted,
        *([Member("boosted trees, sets of categories", by_sets)] if several else []),
        Member("boosted trees, pairs of categories", pairs),
        linear,
    ]


def _trees(n_rows: int) -> Boosting:
    """Return boosted trees for so many rows."""
    if n_rows > MANY_ROWS:
        return Boosting(
            learning_rate=0.1, max_leaves=63, min_leaf=20, most_rounds=500, patience=30
        )
    return Boosting(max_leaves=15 if n_rows < _FEW_ROWS else 31)


def _random_thresholds(trees: Boosting) -> Boosting:
    return replace(
        trees, extra_trees=True, learning_rate=0.06, patience=60, feature_share=0.6
    )


def check_savable(members: Iterable[Member]) -> None:
    """Raise a TypeError if a member is not part of aucmax."""
    for _, estimator in members:
        kind = type(estimator)
        if not kind.__module__.startswith("aucmax."):
            raise TypeError(
                f"The member {kind.__name__} cannot be saved: it is not part of "
                "aucmax, and loading it from a file could run code. Use members of "
                "aucmax, or save the model with skops.io."
            )


def named_members(given: Iterable[Any]) -> list[Member]:
    """Return the members of a list of estimators or (name, estimator).

    An estimator without a name gets that of its class; repeated names are numbered.
    """
    members: list[Member] = []
    for item in given:
        name, estimator = item if isinstance(item, tuple | list) else ("", item)
        if not hasattr(estimator, "fit") or not (
            hasattr(estimator, "decision_function")
            or hasattr(estimator, "predict_proba")
        ):
            raise ValueError(
                f"members contains {estimator!r}; expected an estimator with fit and "
                "decision_function or predict_proba, or a tuple (name, estimator)."
            )
        name = str(name) or type(estimator).__name__
        taken = {member.name for member in members}
        if name in taken:
            numbered = (f"{name} {k}" for k in range(2, len(taken) + 3))
            name = next(other for other in numbered if other not in taken)
        members.append(Member(name, estimator))
    if not members:
        raise ValueError(
            "members is empty; expected at least one estimator. Use members=None for "
            "the default members."
        )
    return members
