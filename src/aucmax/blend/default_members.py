"""Members of a blend: the defaults, and the members that a user gives."""

from collections.abc import Iterable
from typing import Any

from aucmax.blend.boosting import Boosting
from aucmax.blend.crossfit import Member
from aucmax.blend.trees import RandomizedTrees
from aucmax.kernel.kernel_cv import KernelAUCCV
from aucmax.linear.bam_cv import BAMCV
from aucmax.linear.least_squares import LeastSquaresAUC


def default_team(has_columns: bool) -> list[Member]:
    """Return the default members for tables, or for wide sparse rows.

    They were chosen on the tables and data sets of docs/tables.md.
    """
    linear = Member("linear", BAMCV())
    if not has_columns:
        return [Member("linear, square loss", LeastSquaresAUC()), linear]
    return [
        Member("boosted trees", Boosting()),
        linear,
        Member("randomised trees", RandomizedTrees()),
        Member("kernel", KernelAUCCV(cv=3, fallback=False)),
    ]


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
