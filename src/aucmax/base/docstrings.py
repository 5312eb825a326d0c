"""Docstring entries that several estimators share."""

import re
from inspect import cleandoc
from typing import Any

_SHARED = {
    "passes": """
max_iter : int, default=5
    Number of passes over the data in ``fit``.
shuffle : bool, default=True
    Visit the rows in a new random order in each pass of ``fit``.
random_state : int, RandomState instance or None, default=None
    Random seed of that order.
""",
    "precondition": """
precondition : bool, default=True
    Centre and scale features internally. This changes the number of passes to the
    minimum, not the minimum.
""",
    "average": """
average : bool, default=True
    Return an average of the iterates, weighted by t, or the last iterate.
""",
    "newton": """
tol : float, default=1e-3
    Gradient norm to stop at, relative to that at zero.
max_iter : int, default=100
    Maximum number of Newton steps; a ``ConvergenceWarning`` is issued if ``tol`` is not
    reached.
""",
    "cv": """
cv : int, cross-validation generator or iterable, default=5
    Number of stratified folds (at most the rows of the smaller class), or anything that
    scikit-learn accepts as ``cv``. Row weights also count in the AUC of a fold.
""",
    "kernel": """
sigma : float or "auto", default="auto"
    Kernel width, in units of the scaled features. "auto": σ² is the mean squared
    distance of rows to their mean, for scaled features the number that vary.
width : float, default=1.0
    Factor on sigma, to tune the width independently of units.
scale : {"auto", "none"}, default="auto"
    "auto" divides features by their standard deviations, except in text (more features
    than rows, less than a tenth of the values nonzero). "none" does not scale.
""",
    "linear": """
linear : bool, default=False
    Whether to prepend the scaled features to those of the kernel.
""",
    "weights": """
coef_ : ndarray of shape (1, n_features)
    Weights of the features.
""",
    "intercept": """
intercept_ : ndarray of shape (1,)
    Places the score 0 midway between the mean scores of the classes.
""",
    "classes": """
classes_ : ndarray of shape (2,)
    Negative and positive label.
""",
    "features": """
n_features_in_, feature_names_in_ : int, ndarray of shape (n_features_in_,)
    Number of features, and their names if X was a data frame.
""",
    "state": """
n_iter_ : int
    Number of passes.
state_ : State
    Variables of the algorithm; ``partial_fit`` continues from them.
""",
    "residual": """
n_iter_ : int
    Number of passes.
residual_ : float
    Relative gradient at the last full gradient; compared with ``tol``.
""",
    "path": """
l2_ : float
    Penalty with the highest mean AUC; the largest of equal ones.
l2s_ : ndarray of shape (n_l2s,)
    All penalties, decreasing.
coef_path_ : ndarray of shape (n_l2s, n_features)
    Weights for each penalty, from all rows; ``coef_`` has those for ``l2_``.
""",
    "scaling": """
sigma_ : float
    Kernel width, in units of the scaled features.
columns_ : ndarray of shape (n_columns,)
    Features that vary; constant ones are ignored.
centre_, unit_, low_, high_ : ndarrays of shape (n_columns,)
    Scaling of these features: (x - centre) · unit, including ``1 / sigma_``, clipped to
    the range [low, high] of the training rows.
""",
}


def complete_docstring(kind: Any, sections: str) -> None:
    """Insert shared parts into a class docstring.

    ``sections`` are inserted before See Also; a line ``.. shared: name, name`` is
    replaced by these entries.
    """

    def entries(found: re.Match[str]) -> str:
        return "\n".join(_SHARED[name].strip() for name in found[1].split(", "))

    before, see_also, after = cleandoc(kind.__doc__ or "").partition("\nSee Also\n")
    text = before + (sections if see_also else "") + see_also + after
    kind.__doc__ = re.sub(r"^\.\. shared: (.*)$", entries, text, flags=re.MULTILINE)
