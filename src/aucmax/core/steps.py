r"""Step sizes.

Every step is relative to what the data say: :math:`\bar\kappa^2`, the mean squared norm
of a row in the learner's coordinates; m, the number of features that make it up; and
the number of *effective* rows :math:`\tilde t = 4 p (1 - p) t`. With one positive in a
thousand rows, a thousand rows teach as much as four rows of balanced classes do;
counting rows instead would let the steps die before the tenth positive came. And it
takes about m rows to learn something of every feature at full step: until then steps do
not fall.
"""

import numpy as np

from aucmax.core.jit import inlined
from aucmax.core.table import Float

CONSTANT, INVSQRT, INV = range(3)
SCHEDULES = {"constant": CONSTANT, "invsqrt": INVSQRT, "inv": INV}


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
    penalty. ``balance`` is 4p(1 - p).
    """
    if schedule == INVSQRT:
        return eta0 / (norm * np.sqrt(1.0 + (balance / width) * t))
    if schedule == INV:
        return eta0 / (norm + eta0 * convexity * t)
    return eta0 / norm


@inlined
def rates(n: Float, rows: float) -> tuple[float, float, float, float]:
    """Return p, what turns sums of the classes into means, and weights into shares."""
    total = n[0] + n[1]
    return n[0] / total, 1.0 / n[0], 1.0 / n[1], rows / total
