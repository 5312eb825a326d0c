r"""Step sizes.

Every step is relative to what the data say: :math:`\bar\kappa^2`, the mean squared norm
of a row in the learner's coordinates; m, the number of features that make it up; and
the number of *effective* rows :math:`\tilde t = 4 p (1 - p) t`. With one positive in a
thousand rows, a thousand rows teach as much as four rows of balanced classes do;
counting rows instead would let the steps die before the tenth positive came. And it
takes about m rows to learn something of every feature at full step: until then steps do
not fall.

Only the ``printed`` step sizes are not relative to anything: they are the numbers that
the papers' pseudo-code has.
"""

import numpy as np

from aucmax.core.jit import inlined
from aucmax.online.engine.feature_table import MILDEST, NORM, WIDTH, P, Table

CONSTANT, INVSQRT, INV, PRINTED = range(4)
SCHEDULES = {
    "constant": CONSTANT,
    "invsqrt": INVSQRT,
    "inv": INV,
    "printed": PRINTED,
}


@inlined
def step_size(
    schedule: int,
    eta0: float,
    norm: float,
    width: float,
    t: float,
    balance: float,
    convexity: float,
) -> float:
    r"""Return the step size at row ``t``.

    ``constant``: :math:`\eta_0 / \bar\kappa^2`; ``invsqrt``: that over
    :math:`\sqrt{1 + \tilde t / m}`, m the ``width``; ``inv``:
    :math:`1 / (\bar\kappa^2 / \eta_0 + \mu t)`, :math:`\mu` the ``convexity`` of the
    penalty. ``balance`` is 4p(1 - p). ``printed``: :math:`\eta_0 / \sqrt t`.
    """
    if schedule == PRINTED:
        return eta0 / np.sqrt(t)
    if schedule == INVSQRT:
        return eta0 / (norm * np.sqrt(1.0 + (balance / width) * t))
    if schedule == INV:
        return eta0 / (norm + eta0 * convexity * t)
    return eta0 / norm


def explicit(eta: float, ridge: float) -> float:
    """Return the step size that makes an explicit step of one with a proximal map.

    (w - e g) / (1 + e ridge) is w - eta (g + ridge w) if e = eta / (1 - eta ridge).
    """
    if eta * ridge >= 1.0:
        raise ValueError(
            f"The printed step of size {eta:g} takes a penalty of {ridge:g} past zero: "
            "their product has to be below one."
        )
    return eta / (1.0 - eta * ridge)


@inlined
def step_at(schedule: int, eta0: float, table: Table, t: float) -> float:
    """Return the step size at row ``t`` for what the table knows of the rows."""
    stats = table.stats
    pq = stats[P] * (1.0 - stats[P])
    convexity = pq * stats[MILDEST]
    norm, width = stats[NORM], stats[WIDTH]
    return step_size(schedule, eta0, norm, width, t, 4.0 * pq, convexity)
