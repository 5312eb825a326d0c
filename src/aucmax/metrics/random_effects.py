r"""Prediction intervals from the variation of AUCs between blocks of rows.

Let :math:`\theta_k` be the logit of the AUC in block k of K, with the sampling variance
:math:`s_k^2`. In the random-effects model, AUCs of blocks differ by more than their
sampling error, by the variance

.. math:: \tau^2 = \max\left(0,\; \frac{1}{K-1} \sum_k (\theta_k - \bar\theta)^2
          - \frac1K \sum_k s_k^2 \right).

The AUC of another block differs from the mean of r blocks by the variance
:math:`\tau^2 + (\tau^2 + \bar{s^2}) / r`. The quantile is that of Student's t with
K - 1 degrees of freedom, as the variance is known from K blocks only [1]_.

.. [1] J. Higgins, S. Thompson, D. Spiegelhalter: A re-evaluation of random-effects
   meta-analysis. Journal of the Royal Statistical Society A 172 (2009). They have K - 2
   degrees of freedom.
"""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from aucmax.metrics.delong import AUCInterval
from aucmax.metrics.intervals import logistic


class BlockAUC(NamedTuple):
    """AUC of a block of rows."""

    value: float
    se: float  # sampling error
    fewest: float  # rows of the smaller class


def prediction_interval(
    blocks: Sequence[BlockAUC], recent: int, level: float = 0.95
) -> AUCInterval:
    """Return the mean AUC of the last ``recent`` blocks, and where another one lies.

    At least two blocks are needed. The standard error is that of the prediction.
    """
    from scipy.special import stdtrit  # slow import

    logits, variances = np.array([_logit(block) for block in blocks]).T
    sampling = float(variances.mean())
    between = max(0.0, float(logits.var(ddof=1)) - sampling)
    used = blocks[-recent:]
    deviation = sqrt(between + (between + sampling) / len(used))
    value = float(np.mean([block.value for block in used]))
    mean = used[-1]._replace(value=value, fewest=sum(block.fewest for block in used))
    centre, _ = _logit(mean)
    half = float(stdtrit(len(blocks) - 1, 0.5 * (1.0 + level))) * deviation
    low, high = logistic(centre - half), logistic(centre + half)
    se = deviation * value * (1.0 - value)
    return AUCInterval(value, min(low, value), max(high, value), se)


def _logit(block: BlockAUC) -> tuple[float, float]:
    """Return the logit of an AUC and its variance, finite also for AUCs of 0 and 1.

    An AUC is not trusted to be nearer to 0 or 1 than a quarter of one row, and without
    a standard error it counts as a proportion of the rows of the smaller class.
    """
    least = 0.25 / max(block.fewest, 1.0)
    value = min(max(block.value, least), 1.0 - least)
    spread = value * (1.0 - value)
    variance = block.se**2 if block.se > 0.0 else spread / max(block.fewest, 1.0)
    return log(value / (1.0 - value)), variance / spread**2
