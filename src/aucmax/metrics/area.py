"""The area under the ROC curve."""

from numpy.typing import ArrayLike

from aucmax.core.ranking import weighted_win_fraction, win_fraction
from aucmax.metrics._check import classes


def auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> float:
    r"""Return the chance that a positive scores higher than a negative.

    .. math::

        A = \frac{1}{mn} \sum_{i \in +} \sum_{j \in -}
            \left( 1[s_i > s_j] + \tfrac12\, 1[s_i = s_j] \right)

    for m positives and n negatives: the area under the ROC curve, and the statistic of
    Mann and Whitney [1]_ over mn. Without weights it is that fraction rounded once.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes: numbers, booleans or strings.
    score : array-like of shape (n_rows,)
        Higher means more likely positive. Infinite scores are ranked, NaN is an error.
        float32 is ranked as it is, any other type as float64.
    sample_weight : array-like of shape (n_rows,), optional
        A pair counts the product of its two weights, so that weight k is the row
        k times over.
    pos_label : label, optional
        The positive class; by default the larger of the two labels.

    Returns
    -------
    float
        Between 0 and 1.

    Notes
    -----
    The smaller class is sorted, then each row of the larger one is found in it:
    O(n log m) time, O(m + n) memory.

    References
    ----------
    .. [1] H. B. Mann, D. R. Whitney: On a test of whether one of two random variables
       is stochastically larger than the other. Annals of Mathematical Statistics 18
       (1947).

    Examples
    --------
    >>> from aucmax.metrics import auc
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    pos, neg, w_pos, w_neg = classes(y, score, sample_weight, pos_label)
    if w_pos is None or w_neg is None:
        return win_fraction(pos, neg)
    return weighted_win_fraction(pos, neg, w_pos, w_neg)
