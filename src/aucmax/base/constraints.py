"""Constraints of parameters, for scikit-learn's validation."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

POSITIVE = Interval(Real, 0, None, closed="neither")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")

# Parameters that mean the same in several estimators.
SHARED: dict[str, Any] = {
    "C": [POSITIVE],
    "average": ["boolean"],
    "buffer_size": [COUNT],
    "cv": ["cv_object"],
    "eta0": [POSITIVE],
    "l1": [NON_NEGATIVE],
    "l2": [NON_NEGATIVE, StrOptions({"auto"})],
    "l2s": [COUNT, "array-like"],
    "linear": ["boolean"],
    "max_iter": [COUNT],
    "n_components": [COUNT],
    "policy": [StrOptions({"fifo", "reservoir"})],
    "precondition": ["boolean"],
    "random_state": ["random_state"],
    "scale": [StrOptions({"auto", "none"})],
    "shuffle": ["boolean"],
    "sigma": [POSITIVE, StrOptions({"auto"})],
    "step": [StrOptions({"implicit", "explicit"})],
    "tol": [POSITIVE],
    "width": [POSITIVE],
}
