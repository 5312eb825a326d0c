"""The stages of FSAUC: their lengths, radii and starts.

See :mod:`aucmax.online.fsauc`.
"""

import numpy as np

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float
from aucmax.online import engine
from aucmax.online.engine import Table
from aucmax.online.engine.feature_table import average_part
from aucmax.online.engine.statistics import average_weight

FIRST = 16.0  # effective rows in the first stage of a stream
_PATIENCE = 4.0  # effective rows per feature with full steps
BETA0 = 9.0  # 1 + 8 κ²

# Slots of State.z: steps, in all and in this stage; the stage, from 1; number of
# planned stages, and the length of one, or of an unplanned one in effective rows; the
# radii r and D; β; r and the step size η relative to the first stage; the variables a,
# b and α, and their starts; the factor s of the weights, w = w₁ + s W; ‖w - w₁‖²;
# whether ‖w‖₁ is tracked, and its bound if it is, else ‖w₁‖₁; the largest norm of a
# row; as printed Σ a and Σ b. (Σ s is the weight of the average, in the table.)
T, DONE, STAGE, PLANNED, LENGTH, BALL, DUAL, BETA, FALL, ETA = range(10)
A, B, ALPHA, A1, B1, ALPHA1, SCALE, REACH, NEAR, SIZE, KAPPA, SUM_A, SUM_B = range(
    10, 23
)


@kernel
def plan(n: float, balance: float, width: float) -> tuple[float, float, float]:
    """Return the number of stages for ``n`` rows, the length of one, and the first η.

    ``balance`` is 4p(1 - p): stages are longer if positives are rare.
    """
    effective = max(balance * n, 2.0)
    m = np.floor(0.5 * np.log2(2.0 * effective / np.log2(effective))) - 1.0
    m = max(m, 1.0)
    length = np.ceil(n / m)
    return m, length, 1.0 / np.sqrt(1.0 + balance * length / (_PATIENCE * width))


def printed_plan(n: int) -> tuple[float, float]:
    """Return m (at least one) and n₀ of the paper's Algorithm 1."""
    m = max(int(0.5 * np.log2(2.0 * n / np.log2(max(n, 2)))) - 1, 1)
    return float(m), float(n // m)


@inlined
def finished(z: Float, done: float, balance: float) -> bool:
    """Return whether the stage is complete after ``done`` steps."""
    if z[STAGE] <= z[PLANNED]:
        return done >= z[LENGTH]
    # The half keeps rounding from deciding when all of these are round numbers.
    return balance * (done + 0.5) >= z[LENGTH]


@inlined
def next_stage(
    z: Float,
    t: float,
    done: float,
    balance: float,
    width: float,
    variance: float,
    printed: bool,
) -> None:
    """Set r, D, β, η and the length for the stage after this one.

    ``t`` and ``done`` are the steps so far and of this stage, ``balance`` is 4p(1 - p),
    ``variance`` that of the new α.
    """
    before = z[FALL]
    if z[STAGE] >= z[PLANNED]:
        z[LENGTH] = 2.0 * (balance * done if z[STAGE] == z[PLANNED] else z[LENGTH])
    if printed:
        z[FALL] = 0.5 * before
    elif z[STAGE] < z[PLANNED]:
        law = 1.0 / np.sqrt(1.0 + balance * t / width)
        z[FALL] = min(max(law, 0.5 * before), before)
    else:
        law = 1.0 / np.sqrt(1.0 + balance * t / (_PATIENCE * width))
        z[FALL] = min(law, before)
    z[BALL] *= z[FALL] / before
    beta = BETA0 + 2.0 * variance / (z[BALL] * z[BALL])
    z[ETA] *= min(z[FALL] / before * np.sqrt(beta / z[BETA]), 1.0)
    z[BETA] = beta
    z[DUAL] = 2.0 * np.sqrt(2.0) * z[BALL] + 3.0 * np.sqrt(variance)
    z[STAGE] += 1.0


@kernel
def arrive(table: Table, start: Float, of_weights: float, of_past: float) -> None:
    """Replace the weights by the mean of the stage; O(d)."""
    w, u, scales = engine.weights(table), average_part(table), engine.scales(table)
    for j in range(w.shape[0]):
        w[j] = start[j] * scales[j] + (of_weights * w[j] - of_past * u[j])


@kernel
def depart(table: Table, start: Float) -> None:
    """Start a stage from the weights; O(d)."""
    w, u, scales = engine.weights(table), average_part(table), engine.scales(table)
    for j in range(w.shape[0]):
        start[j] = w[j] / scales[j] if scales[j] > 0.0 else 0.0
        w[j] = u[j] = 0.0


@inlined
def magnitude(table: Table, start: Float, j: int, factor: float) -> float:
    """Return |w₁ + factor W|/√D of feature ``j``, zero if it has no scale."""
    unit, first = np.sqrt(engine.scales(table)[j]), start[j]
    w = engine.weights(table)[j]
    return abs(first * unit + factor * w / unit) if unit > 0.0 else 0.0


@kernel
def magnitudes(table: Table, start: Float, factor: float) -> Float:
    """Return the magnitudes of all features; O(d)."""
    found = np.zeros(start.shape[0])
    for j in range(start.shape[0]):
        found[j] = magnitude(table, start, j, factor)
    return found


@kernel
def shrink(
    table: Table, start: Float, factor: float, ridge: float, threshold: float
) -> None:
    """Soft-threshold the weights at unit scale, and shrink them; O(d)."""
    past = average_weight(table)
    weights, u, scales = (
        engine.weights(table),
        average_part(table),
        engine.scales(table),
    )
    for j in range(weights.shape[0]):
        w = start[j] * scales[j] + factor * weights[j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(scales[j]), 0.0)
        change = (soft / (1.0 + ridge * scales[j]) - w) / factor
        weights[j] += change
        u[j] += past * change
