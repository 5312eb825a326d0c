"""Plots and the HTML report of scores; measures are computed in aucmax.metrics."""

from typing import Any

from aucmax.report.html_report import html

__all__ = [
    "CalibrationDisplay",
    "DecisionCurveDisplay",
    "GainsDisplay",
    "GroupsDisplay",
    "ImportanceDisplay",
    "PrecisionRecallDisplay",
    "ROCDisplay",
    "ScoresDisplay",
    "html",
]


def __getattr__(name: str) -> Any:
    """Import a display on first use: matplotlib is an extra."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from aucmax.report import displays
    except ModuleNotFoundError as error:
        need = f"{name} needs matplotlib: pip install 'aucmax[plot]'"
        raise ImportError(need) from error
    return getattr(displays, name)
