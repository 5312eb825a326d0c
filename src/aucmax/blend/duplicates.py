"""Duplicate rows in cross-fitting: counts and warnings."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aucmax.base.folds import Repeats
from aucmax.blend.crossfit import Fold
from aucmax.core.user_warning import warn_user
from aucmax.core.validation import DataWarning

_MIN_SHARE = 0.01  # of the rows: fewer duplicates give no warning


class DuplicateCounts(NamedTuple):
    """Numbers of duplicate rows."""

    repeated: int  # rows that equal an earlier row
    split: int  # rows whose model was trained on an equal row


def count_duplicates(equal: Repeats, folds: Sequence[Fold]) -> DuplicateCounts:
    """Count duplicate rows; warn if there are many and they look like copies.

    The warning refers to the caller of ``AUCClassifier.fit``.
    """
    split = _count_split(equal, folds) if equal.repeated else 0
    n = len(equal.of)
    if equal.copies and equal.repeated >= _MIN_SHARE * n:
        message = (
            f"{equal.repeated} of {n} rows equal another row and have its label. They "
            "are treated as copies: folds keep them together, and the confidence "
            "interval of auc_ counts distinct rows."
        )
        message += (
            " If they are separate observations, pass cv=StratifiedKFold(5, "
            "shuffle=True) in Python."
        )
        if split:
            message = (
                f"{split} of {n} rows are scored by models that were trained on an "
                "equal row. If these rows are copies (oversampling, joins), auc_ is "
                "too high: remove the copies, or keep them in one fold by "
                "cv, groups or group=COLUMN."
            )
        warn_user(message, DataWarning)
    return DuplicateCounts(equal.repeated, split)


def _count_split(equal: Repeats, folds: Sequence[Fold]) -> int:
    """Return how many rows are scored by a model that was trained on an equal row."""
    count = 0
    for fold in folds:
        trained = np.zeros(len(equal.of), np.bool_)
        trained[equal.of[fold.train]] = True
        count += int(np.count_nonzero(trained[equal.of[fold.test]]))
    return count
