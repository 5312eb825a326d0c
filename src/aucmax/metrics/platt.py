r"""Platt's calibration: log-odds a s + b from scores s.

The parameters minimise the cross-entropy with the targets (n₊ + 1)/(n₊ + 2) and
1/(n₋ + 2) in place of 1 and 0, so that scores that separate the classes do not get
infinite odds.

J. Platt, "Probabilistic outputs for support vector machines", 1999; solved as in
H.-T. Lin, C.-J. Lin, R. Weng, "A note on Platt's probabilistic outputs", 2007.
"""

import numpy as np
from scipy.special import expit

from aucmax.core.rows import Float

_ROUNDS = 100
_TINY = 1e-12  # added to the Hessian; smallest step
_NEAR = 1e-9  # expected decrease below which Newton steps need no line search
_ROUNDING = 1e-10  # standard deviation of equal scores, relative to their size
_LEAST_SLOPE = 1e-3  # odds must increase with the score


def log_odds(pos: Float, neg: Float, n: Float) -> tuple[float, float]:
    """Return the slope a and the offset b for scores of both classes.

    ``n`` are the numbers of positives and negatives, of which the scores are samples.
    Without scores of both classes, the log-odds are those of the class frequencies;
    zero if only one class has been seen.
    """
    if not len(pos) or not len(neg):
        return _LEAST_SLOPE, float(np.log(n[0] / n[1])) if n.all() else 0.0
    scores = np.concatenate([pos, neg])
    centre, unit = float(np.mean(scores)), float(np.std(scores))
    if unit <= _ROUNDING * float(np.abs(scores).max()):
        unit = 1.0
    s = (scores - centre) / unit
    kept = np.array([len(pos), len(neg)])
    goal = np.repeat([(n[0] + 1.0) / (n[0] + 2.0), 1.0 / (n[1] + 2.0)], kept)
    rate = np.repeat(n / n.sum() / kept, kept)
    a, b = 0.0, float(np.log(n[0] / n[1]))
    value = _loss(a * s + b, goal, rate)
    for _ in range(_ROUNDS):
        p = expit(a * s + b)
        off, bend = rate * (p - goal), rate * p * (1.0 - p)
        gradient = np.array([off @ s, off.sum()])
        mixed = bend @ s
        hessian = np.array([[bend @ (s * s), mixed], [mixed, bend.sum()]])
        hessian[np.diag_indices(2)] += _TINY
        step = -np.linalg.solve(hessian, gradient)
        descent, size = -float(gradient @ step), 1.0
        # Near the minimum, rounding hides the decrease.
        while descent > _NEAR and size > _TINY:
            moved = _loss((a + size * step[0]) * s + b + size * step[1], goal, rate)
            if moved <= value - 1e-4 * size * descent:
                value = moved
                break
            size *= 0.5
        a, b = a + size * step[0], b + size * step[1]
        if descent <= _NEAR**2:
            break
    if a < _LEAST_SLOPE:
        a, b = _LEAST_SLOPE, float(np.log(n[0] / n[1]))
    a /= unit
    return float(a), float(b - a * centre)


def _loss(t: Float, goal: Float, rate: Float) -> float:
    """Return the cross-entropy of log-odds ``t``."""
    return float(rate @ (np.logaddexp(0.0, t) - goal * t))
