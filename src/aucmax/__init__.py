"""Rankers that maximise AUC, behind scikit-learn's interface.

Every name below is imported when it is first asked for, so that ``import aucmax`` costs
next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aucmax import metrics as metrics
    from aucmax.model import load as load
    from aucmax.online.fsauc import FSAUC as FSAUC
    from aucmax.online.solam import SOLAM as SOLAM
    from aucmax.online.spam import SPAM as SPAM

__version__ = "0.1.0"

# The estimators: what a model file may name, and what the contract tests run through.
ESTIMATORS = {
    "SPAM": "aucmax.online.spam",
    "SOLAM": "aucmax.online.solam",
    "FSAUC": "aucmax.online.fsauc",
}

_PUBLIC = {**ESTIMATORS, "load": "aucmax.model"}
__all__ = ["FSAUC", "SOLAM", "SPAM", "load", "metrics"]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return import_module("aucmax.metrics")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
