r"""Platt's calibration: from scores to log-odds, a s + b.

The parameters minimise the cross-entropy of the labels, which are taken for a little
less than certain, (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2): scores that part the classes then
do not get infinite odds.

J. Platt, "Probabilistic outputs for support vector machines", 1999; solved as in
H.-T. Lin, C.-J. Lin, R. Weng, "A note on Platt's probabilistic outputs", 2007.
"""

import numpy as np
from scipy.special import expit

from aucmax.core.rows import Float

_ROUNDS = 100
_TINY = 1e-12  # of a Hessian, and of a step worth taking
_NEAR = 1e-9  # of a descent, below which Newton's steps need no care
_LEAST_SLOPE = 1e-3  # odds never fall as scores rise


def log_odds(pos: Float, neg: Float, n: Float) -> tuple[float, float]:
    """Return the slope a and the offset b for scores of both classes.

    ``n`` is how many positives and negatives there are, of which these are samples.
    Without scores of both classes, the log-odds are those of the classes; zero if only
    one has been seen.
    """
    if not len(pos) or not len(neg):
        return _LEAST_SLOPE, float(np.log(n[0] / n[1])) if n.all() else 0.0
    scores = np.concatenate([pos, neg])
    centre, unit = float(np.mean(scores)), float(np.std(scores)) or 1.0
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
        # Near the minimum, rounding would hide the descent.
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
