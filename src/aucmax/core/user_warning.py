"""Warnings that refer to the user's line of code."""

import sys
import warnings

_OURS = ("aucmax", "sklearn")  # scikit-learn wraps fit


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with reference to the first caller outside aucmax and scikit-learn."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _OURS:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
