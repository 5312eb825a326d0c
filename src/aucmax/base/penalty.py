r"""Ridge penalties that do not depend on the units of features.

The size of a feature is

.. math:: s_j^2 = E[z_j^2 \mid z_j \ne 0]

with z the difference of a pair. Zeros do not count, so rare features are not scaled up.
Text has many rare features whose values share a unit already: with more features than
rows and less than a tenth of the values nonzero, all features have the same size, as if
a row had ten of them, :math:`s^2 = E \|z\|^2 / 10`.

The default ridge needs no tuning:

.. math:: \lambda_j = \tfrac{1}{2} \ell''\, s_j^2\, (1/n_+ + 1/n_-) (1 + d^2 / 4n)

with the curvature :math:`\ell''` of the loss, the numbers of rows n (of a class or of
both; a weight of k is k rows) and the mean number d of nonzero features of a pair. It
is comparable to logistic regression with C=1 on standardised features. It decreases
with the number of rows, and it increases where there are nearly as many features as
rows, which would fit noise (not in text, where most features rarely occur together).
The factors were chosen by test AUC: see ``benchmarks/choices.py penalty``.
"""

import numpy as np

from aucmax.base.class_moments import NEG, POS, ClassMoments
from aucmax.core.rows import Float

CURVATURE = 2.0  # of the square loss, (1 - m)²
# Default penalty of stochastic learners, relative to s². They stay too far from the
# minimum for the number of rows to matter, and in a stream it is not known.
DEFAULT_L2 = 1e-3

_KERNEL, _FEW = 0.3, 1000.0  # see kernel_ridge
_FACTOR, _CROWD = 0.5, 0.25
_SPARSE = 0.1  # share of nonzero values below which data count as text
_FEATURES = 10.0  # nominal features of a row of text


def squared_sizes(moments: ClassMoments, diagonal: Float) -> Float:
    """Return s²; ``diagonal`` is the mean of z² over all pairs."""
    if _is_text(moments):
        return np.full(len(diagonal), float(diagonal.sum()) / _FEATURES)
    share = _in_pairs(moments)
    return diagonal / np.where(share > 0.0, share, 1.0)


def ridge(
    l2: float | str, moments: ClassMoments, diagonal: Float, curvature: float
) -> float | Float:
    """Return the parameter ``l2``, or λ of each feature if it is "auto"."""
    if not isinstance(l2, str):
        return float(l2)
    weight = moments.weight
    factor = _FACTOR * curvature * float((1.0 / weight).sum())
    if not _is_text(moments):
        d = float(_in_pairs(moments).sum())
        factor *= 1.0 + _CROWD * d * d / float(weight.sum())
    return factor * squared_sizes(moments, diagonal)


def ridge_of_square_loss(l2: float | str, moments: ClassMoments) -> Float:
    """Return the penalty of each weight for the square loss."""
    delta = moments.mean[POS] - moments.mean[NEG]
    diagonal = moments.variance.sum(axis=0) + delta**2
    found: Float = ridge(l2, moments, diagonal, CURVATURE) + np.zeros(len(delta))
    return found


def _is_text(moments: ClassMoments) -> bool:
    """Return whether there are more features than rows, and most values are zero."""
    share = moments.nonzero_share
    occurs = (share > 0.0).any(axis=0)  # most hashed features never occur
    many = occurs.sum() > moments.weight.sum()
    return bool(many and share[:, occurs].mean() < _SPARSE)


def _in_pairs(moments: ClassMoments) -> Float:
    """Return the share of pairs in which a feature is nonzero in one row or both."""
    pos, neg = moments.nonzero_share
    share: Float = pos + neg - pos * neg
    return share


def kernel_ridge(pos: float, neg: float, hinge: bool = False) -> float:
    """Return λ for the features of a kernel, which share a unit, from class weights.

    It is 0.3 (1/n₊ + 1/n₋), times 1000/n beyond a thousand rows (a slightly higher
    power for the plain hinge): with few rows a kernel fits noise, with many rows the
    penalty is its bias. Chosen by test AUC on magic04, ijcnn1, spambase, splice,
    svmguide3, german and cod-rna; see ``benchmarks/choices.py kernel``.
    """
    share = min(1.0, _FEW / (pos + neg)) ** (1.25 if hinge else 1.0)
    return _KERNEL * (1.0 / pos + 1.0 / neg) * share
