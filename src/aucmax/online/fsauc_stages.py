"""The stages of FSAUC: their lengths, radii and starts.

See :mod:`aucmax.online.fsauc`.
"""

import numpy as np

from aucmax.core.jit import inlined, kernel
from aucmax.core.rows import Float
from aucmax.online.engine.feature_table import D, U, W

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
def arrive(feat: Float, start: Float, of_weights: float, of_past: float) -> None:
    """Replace the weights by the mean of the stage; O(d)."""
    for j in range(feat.shape[1]):
        mean = of_weights * feat[W, j] - of_past * feat[U, j]
        feat[W, j] = start[j] * feat[D, j] + mean


@kernel
def depart(feat: Float, start: Float) -> None:
    """Start a stage from the weights; O(d)."""
    for j in range(feat.shape[1]):
        start[j] = feat[W, j] / feat[D, j] if feat[D, j] > 0.0 else 0.0
        feat[W, j] = feat[U, j] = 0.0


@inlined
def magnitude(feat: Float, start: Float, j: int, scale: float) -> float:
    """Return |w₁ + scale W|/√D of feature ``j``, zero if it has no scale."""
    unit, first, w = np.sqrt(feat[D, j]), start[j], feat[W, j]
    return abs(first * unit + scale * w / unit) if unit > 0.0 else 0.0


@kernel
def magnitudes(feat: Float, start: Float, scale: float) -> Float:
    """Return the magnitudes of all features; O(d)."""
    found = np.zeros(feat.shape[1])
    for j in range(feat.shape[1]):
        found[j] = magnitude(feat, start, j, scale)
    return found


@kernel
def shrink(
    feat: Float,
    start: Float,
    scale: float,
    past: float,
    ridge: float,
    threshold: float,
) -> None:
    """Soft-threshold the weights at unit scale, and shrink them; O(d)."""
    for j in range(feat.shape[1]):
        w = start[j] * feat[D, j] + scale * feat[W, j]
        soft = np.sign(w) * max(abs(w) - threshold * np.sqrt(feat[D, j]), 0.0)
        change = (soft / (1.0 + ridge * feat[D, j]) - w) / scale
        feat[W, j] += change
        feat[U, j] += past * change
