r"""Ridges that depend on no feature's unit.

The size of a feature is

.. math:: s_j^2 = E[z_j^2 \mid z_j \ne 0]

with z the difference of a pair. What is rare is not scaled up for that: zeros count for
nothing. Where features are many and rare, as in texts, their values have one unit
already, and say what a feature is worth: with more features than rows and less than a
tenth of the values not zero, all have the same size, as if a row had ten features,
:math:`s^2 = E \|z\|^2 / 10`.

The default ridge needs no tuning:

.. math:: \lambda_j = \tfrac{1}{2} \ell''\, s_j^2\, (1/n_+ + 1/n_-) (1 + d^2 / 4n)

with :math:`\ell''` the curvature of the loss, n the rows, of a class or of both, and d
the features of a pair that are not zero, on the mean; a weight of k is k rows. So a
feature is held back as it would be on unit scale, as logistic regression does with C=1
on standardised features, less the more rows there are, and more where there are nearly
as many features as rows, whose noise they would fit. (Not in texts: there, too, most
features hardly ever meet.) The factors were chosen by test AUC: see
``benchmarks/choices.py penalty``.
"""

import numpy as np

from aucmax.core.rows import Float

CURVATURE = 2.0  # of the square loss, (1 - m)²
# The default penalty of learners that take steps, over s². They do not get so near the
# minimum that it would matter how many rows there are, and in a stream nobody knows.
DEFAULT_L2 = 1e-3

_KERNEL, _FEW = 0.3, 1000.0  # of kernel_ridge, which says where they come from
_FACTOR, _CROWD = 0.5, 0.25
_SPARSE = 0.1  # share of the values that are not zero, below which all are rare
_FEATURES = 10.0  # that a row has, as it were, if they are


def squared_sizes(weight: Float, often: Float, diagonal: Float) -> Float:
    """Return s².

    ``weight`` is that of the classes, ``often`` the share of their rows in which a
    feature is not zero, ``diagonal`` are the means of z² over all pairs.
    """
    if _rare(weight, often):
        return np.full(len(diagonal), float(diagonal.sum()) / _FEATURES)
    found = _in_pairs(often)
    return diagonal / np.where(found > 0.0, found, 1.0)


def default_ridge(
    weight: Float, often: Float, diagonal: Float, curvature: float
) -> Float:
    """Return λ."""
    factor = _FACTOR * curvature * float((1.0 / weight).sum())
    if not _rare(weight, often):
        d = float(_in_pairs(often).sum())
        factor *= 1.0 + _CROWD * d * d / float(weight.sum())
    return factor * squared_sizes(weight, often, diagonal)


def _rare(weight: Float, often: Float) -> bool:
    """Tell whether features are many, and most values zero."""
    occurs = (often > 0.0).any(axis=0)  # of hashed features, most never do
    many = occurs.sum() > weight.sum()
    return bool(many and often[:, occurs].mean() < _SPARSE)


def _in_pairs(often: Float) -> Float:
    """Return the share of pairs in which a feature is not zero, in one row or both."""
    found: Float = often[0] + often[1] - often[0] * often[1]
    return found


def kernel_ridge(pos: float, neg: float, hinge: bool = False) -> float:
    """Return λ for the features of a kernel, which have one unit, from class weights.

    It is 0.3 (1/n₊ + 1/n₋), and beyond a thousand rows falls with the square of their
    number, for a plain hinge a little faster: where rows are few a kernel fits noise,
    where they are many it is the penalty that keeps it from the truth. Chosen by test
    AUC on magic04, ijcnn1, spambase, splice, svmguide3, german and cod-rna, see
    ``benchmarks/choices.py kernel``.
    """
    share = min(1.0, _FEW / (pos + neg)) ** (1.25 if hinge else 1.0)
    return _KERNEL * (1.0 / pos + 1.0 / neg) * share
