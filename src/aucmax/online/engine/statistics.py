"""Numbers of the rows so far, by name: what learners read and write of Table.stats."""

from aucmax.core.jit import inlined
from aucmax.core.rows import Float
from aucmax.online.engine.feature_table import (
    DUE,
    MILDEST,
    NORM,
    PAST,
    RENEW_AT,
    ROWS,
    SINCE,
    TO_MEAN,
    WIDTH,
    P,
    Table,
)


@inlined
def class_prior(table: Table) -> float:
    """Return p, the fraction of the positives."""
    return table.stats[P]


@inlined
def class_balance(table: Table) -> float:
    """Return 4p(1 - p): one for balanced classes."""
    return 4.0 * table.stats[P] * (1.0 - table.stats[P])


@inlined
def rows_seen(table: Table) -> float:
    """Return the number of rows counted."""
    return table.stats[ROWS]


@inlined
def count_row(table: Table, side: int, weight: float) -> None:
    """Count a row of class ``side``."""
    table.stats[ROWS] += 1.0
    table.n[side] += weight


def restart_count(table: Table) -> float:
    """Set the number and the weight of rows to zero; return the number."""
    rows = float(table.stats[ROWS])
    table.stats[ROWS] = 0.0
    table.n[:] = 0.0
    return rows


@inlined
def mean_norm(table: Table) -> float:
    """Return the mean squared norm of a row."""
    return table.stats[NORM]


@inlined
def effective_width(table: Table) -> float:
    """Return how many features of the largest share would make up ``mean_norm``."""
    return table.stats[WIDTH]


@inlined
def convexity(table: Table) -> float:
    """Return the smallest λ_j D_j: the convexity of the penalty, steps' metric."""
    return table.stats[MILDEST]


@inlined
def is_stale(table: Table) -> bool:
    """Return whether it is time to ``renew`` reference points and scales."""
    return table.stats[ROWS] >= table.stats[RENEW_AT]


@inlined
def renew_after(table: Table, factor: float) -> None:
    """Let ``is_stale`` hold once the rows are ``factor`` times as many."""
    table.stats[RENEW_AT] = factor * table.stats[ROWS]


@inlined
def weight_unit(table: Table) -> float:
    """Return the factor from row weights to weights of mean one."""
    return table.stats[TO_MEAN]


@inlined
def weight_of(y: Float, i: int, table: Table) -> float:
    """Return the weight of row ``i``, in units of the mean weight."""
    return abs(y[i]) * table.stats[TO_MEAN]


@inlined
def average_weight(table: Table) -> float:
    """Return Σγ, the weight of the average of the iterates."""
    return table.stats[PAST]


@inlined
def add_to_average(table: Table, gamma: float) -> None:
    """Add the weights, as they are, to the average with weight ``gamma``."""
    table.stats[PAST] += gamma


@inlined
def restart_average(table: Table) -> None:
    """Set Σγ to zero."""
    table.stats[PAST] = 0.0


@inlined
def penalty_due(table: Table) -> float:
    """Return the step size that the penalty is still to be applied with."""
    return table.stats[DUE]


@inlined
def steps_due(table: Table) -> float:
    """Return the number of steps since the penalty was last applied."""
    return table.stats[SINCE]


@inlined
def clear_penalty(table: Table) -> None:
    """Note that the penalty has been applied."""
    table.stats[DUE] = table.stats[SINCE] = 0.0
