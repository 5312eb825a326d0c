"""Members of a blend: the defaults, and the members that a user gives."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aucmax.blend.boosting import Boosting
from aucmax.blend.crossfit import Member
from aucmax.blend.layout import RowLayout
from aucmax.blend.target_encoded import TargetEncoded
from aucmax.kernel.kernel_cv import KernelAUCCV
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC

MANY_ROWS = 100_000  # beyond, fewer folds and members
_VERY_FEW_ROWS, _FEW_ROWS, _SOME_ROWS = 500, 3_000, 5_000
_MANY_COLUMNS = 40  # of numbers: beyond, each tree sees half of them
_MOST_KERNEL = 300  # features
_LINEAR_ROWS, _KERNEL_ROWS = 30_000, 5_000  # that a model is trained on

_SMALL = Boosting(max_leaves=15)
_MEDIUM = Boosting(max_leaves=31, min_leaf=15, native_up_to=200)
_NUMBERS = Boosting(feature_share=1.0)
_MORE_NUMBERS = replace(_NUMBERS, learning_rate=0.05, patience=50)
_LARGE = Boosting(
    learning_rate=0.1, max_leaves=63, min_leaf=20, most_rounds=500, patience=30
)
_LARGE_NUMBERS = replace(_LARGE, learning_rate=0.07, feature_share=0.8, most_rounds=700)
_PAIRS = Boosting(
    learning_rate=0.05,
    max_leaves=7,
    feature_share=0.25,
    native_up_to=0,
    encode_above=2,
    pairs=36,
)


def default_team(layout: RowLayout, n_rows: int) -> list[Member]:
    """Return the default members for rows of this layout.

    They were chosen on the data of docs/tables.md.
    """
    linear = Member("linear", BAMCV(), _LINEAR_ROWS)
    kernel = Member("kernel", KernelAUCCV(cv=3, fallback=False), _KERNEL_ROWS)
    view = layout.view
    if view is None:  # wide sparse rows
        square_loss = Member("linear, square loss", LeastSquaresAUC())
        return [square_loss, linear._replace(most_rows=sys.maxsize)]
    if view.levels.any():
        linear = linear._replace(estimator=TargetEncoded(BAMCV()))
    if n_rows > MANY_ROWS:
        trees = _LARGE if view.levels.any() else _LARGE_NUMBERS
        return [Member("boosted trees", trees), linear]
    if not view.levels.any():
        trees = _NUMBERS if n_rows < _SOME_ROWS else _MORE_NUMBERS
        if len(view.levels) > _MANY_COLUMNS:
            trees = replace(trees, feature_share=0.5)
        return [Member("boosted trees", trees), linear, kernel]
    few = n_rows < _FEW_ROWS
    trees = _SMALL if few else _MEDIUM
    members = [
        Member("boosted trees", trees),
        Member("boosted trees, pairs of categories", _PAIRS),
    ]
    if (view.levels > trees.encode_above).any():
        by_sets = replace(trees, encode_above=int(view.levels.max()))
        members.append(Member("boosted trees, sets of categories", by_sets))
    words = layout.width > len(layout.levels)  # trees do not see them
    if not few:
        return [*members, linear] if words else members
    narrow = view.width <= _MOST_KERNEL and not words
    if narrow:
        members.append(kernel)
    if n_rows < _VERY_FEW_ROWS or not narrow:
        members.append(linear)
    return members


def check_savable(members: Iterable[Member]) -> None:
    """Raise a TypeError if a member is not part of aucmax."""
    for _, estimator, _ in members:
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
