"""Plots and the HTML report of scores; measures are computed in aucmax.metrics."""

from typing import Any

from aucmax.report.html_report import html
from aucmax.report.monitoring import ColumnShift, UnlabelledRows

__all__ = [
    "CalibrationDisplay",
    "ColumnShift",
    "DecisionCurveDisplay",
    "GainsDisplay",
    "GroupsDisplay",
    "ImportanceDisplay",
    "LearningCurveDisplay",
    "PrecisionRecallDisplay",
    "ROCDisplay",
    "ScoresDisplay",
    "UnlabelledRows",
    "html",
]


def __getattr__(name: str) -> Any:
    """Import a display on first use: matplotlib is an extra."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from aucmax.report import curve_displays, result_displays
    except ModuleNotFoundError as error:
        need = f"{name} needs matplotlib: pip install 'aucmax[plot]'"
        raise ImportError(need) from error
    module = result_displays if hasattr(result_displays, name) else curve_displays
    return getattr(module, name)
