"""Plots and the HTML report of scores; measures are computed in aucmax.metrics."""

from aucmax.report.html_report import html

__all__ = ["html"]
