"""The engine: how rows are visited, and the table of what is known of each feature.

A learner's kernel calls, in the order of its loop,

* ``learn``: in a stream, count the row and update scales; ``renew`` recomputes
  reference points and scales from time to time. ``mean_scores`` updates the mean scores
  of the classes;
* ``look_row``: score and squared norm of the row; ``move_row``: a step along it;
* ``falls_due`` and ``settle``: apply the l2 penalty to many steps at once.

:mod:`~aucmax.online.engine.feature_table` documents the coordinates that learners work
in, :mod:`~aucmax.online.engine.statistics` names the numbers of the rows so far. The
slots of the table are private to the engine: learners get weights and scales as arrays.
"""

from aucmax.online.engine.centred_rows import Known, Stream, Visit, look_row, move_row
from aucmax.online.engine.feature_table import (
    L2,
    Table,
    averaged,
    class_scores,
    empty,
    fade,
    scales,
    threshold,
    weights,
)
from aucmax.online.engine.row_visit import (
    falls_due,
    learn,
    mean_scores,
    renew,
    settle,
    visit,
)

__all__ = [
    "L2",
    "Known",
    "Stream",
    "Table",
    "Visit",
    "averaged",
    "class_scores",
    "empty",
    "fade",
    "falls_due",
    "learn",
    "look_row",
    "mean_scores",
    "move_row",
    "renew",
    "scales",
    "settle",
    "threshold",
    "visit",
    "weights",
]
