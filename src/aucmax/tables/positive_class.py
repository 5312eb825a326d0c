"""Warning if the labels suggest that the other class is the positive one."""

from typing import Any

from numpy.typing import NDArray

from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning
from aucmax.tables.label_meanings import higher


def check_positive(classes: NDArray[Any], share: float) -> None:
    """Warn if the labels suggest that the other class is the positive one.

    scikit-learn's rule takes the larger label, ``classes_[1]``. ``aucmax train`` takes
    the one that the words mean (bad, fraud), else the rarer one; ``share`` is the share
    of rows that have the larger label.
    """
    low, high = classes.tolist()
    if not (isinstance(low, str) and isinstance(high, str)):
        return
    meant = higher(low, high)
    if meant == low or (meant is None and share > 0.5):
        why = "as its name suggests" if meant else f"{1.0 - share:.1%} of the rows"
        warn_user(
            f"The positive class is {high!r}, the larger label, as in scikit-learn. "
            f"If it should be {low!r}, {why}, fit to y == {low!r}.",
            DataWarning,
        )
