r"""Step sizes.

Step sizes are relative to the data: to :math:`\bar\kappa^2`, the mean squared norm of a
row in the learner's coordinates; to m, the effective number of features; and to the
number of *effective* rows :math:`\tilde t = 4 p (1 - p) t`. With one positive in a
thousand, a thousand rows teach as much as four rows of balanced classes: if all rows
counted, steps would be tiny before the tenth positive. It takes about m rows to learn
something of every feature, so steps do not fall before that.

The ``printed`` step sizes are the plain numbers of the papers' pseudo-code.
"""

import numpy as np

from aucmax.core.jit import inlined
from aucmax.online.engine import statistics as stats
from aucmax.online.engine.feature_table import Table

ROOT = 0.5  # the usual power of the number of rows with which step sizes fall
CONSTANT, INVSQRT, INV, PRINTED = range(4)
SCHEDULES = {"constant": CONSTANT, "invsqrt": INVSQRT, "inv": INV, "printed": PRINTED}


@inlined
def raised(t: float, power: float) -> float:
    """Return t to the ``power``; the usual root is faster than a power."""
    return np.sqrt(t) if power == 0.5 else t**power


@inlined
def step_size(
    schedule: int,
    eta0: float,
    power: float,
    norm: float,
    width: float,
    t: float,
    balance: float,
    convexity: float,
) -> float:
    r"""Return the step size at row ``t``.

    ``constant``: :math:`\eta_0 / \bar\kappa^2`; ``invsqrt``: that over
    :math:`(1 + \tilde t / m)^\theta`, m the ``width``, θ the ``power``; ``inv``:
    :math:`1 / (\bar\kappa^2 / \eta_0 + \mu t)`, :math:`\mu` the ``convexity`` of the
    penalty. ``balance`` is 4p(1 - p). ``printed``: :math:`\eta_0 / t^\theta`.
    """
    if schedule == PRINTED:
        return eta0 / raised(t, power)
    if schedule == INVSQRT:
        return eta0 / (norm * raised(1.0 + (balance / width) * t, power))
    if schedule == INV:
        return eta0 / (norm + eta0 * convexity * t)
    return eta0 / norm


def explicit(eta: float, ridge: float) -> float:
    """Return the step size e with which a proximal step is the explicit one of ``eta``.

    (w - e g) / (1 + e ridge) is w - eta (g + ridge w) if e = eta / (1 - eta ridge).
    """
    if eta * ridge >= 1.0:
        raise ValueError(
            f"eta0={eta:g} times the penalty {ridge:g} must be below 1 with "
            'schedule="printed". Use a smaller eta0 or l2.'
        )
    return eta / (1.0 - eta * ridge)


@inlined
def step_at(
    schedule: int,
    eta0: float,
    power: float,
    table: Table,
    t: float,
    share: float = 1.0,
) -> float:
    """Return the step size at row ``t``, relative to the rows of the table.

    ``share`` is the fraction of the squared norm of a row in features that move.
    """
    norm, width = stats.mean_norm(table) * share, stats.effective_width(table) * share
    p = stats.class_prior(table)
    pq = p * (1.0 - p)
    mu = pq * stats.convexity(table)
    return step_size(schedule, eta0, power, norm, width, t, 4.0 * pq, mu)
