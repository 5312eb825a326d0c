"""Displays of curves: ROC, precision and recall, gains, calibration, decisions.

Each has ``from_predictions`` and ``from_estimator``, takes several models at once, and
draws into given axes with ``ax=``. They need ``pip install 'aucmax[plot]'``.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from aucmax.metrics._ranking import steps, with_interval
from aucmax.metrics.auc import auc_interval
from aucmax.metrics.calibration import calibration_curve
from aucmax.metrics.curves import Kind, roc_band, roc_curve
from aucmax.metrics.decisions import net_benefit, operating_point
from aucmax.metrics.top import average_precision_interval, lift_curve
from aucmax.report.display import Display, faint, reach, thinned


class ROCDisplay(Display):
    """ROC curves with confidence bands and operating points.

    Options of ``from_predictions`` and ``from_estimator``: ``band`` ("pointwise",
    "simultaneous" or None), ``fpr`` (false positive rates of operating points to mark),
    ``level`` (confidence level).

    Examples
    --------
    >>> from aucmax.report import ROCDisplay
    >>> y, score = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> ROCDisplay.from_predictions(y, score).ax_.get_xlabel()
    'False positive rate'
    """

    labels = ("False positive rate", "Recall (true positive rate)")
    legend = "AUC (confidence interval)"
    place = "lower right"

    def _draw(
        self,
        positive: Any,
        score: Any,
        name: str,
        *,
        band: Kind | None = "pointwise",
        fpr: Iterable[float] = (),
        level: float = 0.95,
    ) -> None:
        style = self._style()
        found = roc_curve(positive, score)
        across, down = thinned(found.fpr, found.tpr)
        value, low, high = with_interval(
            *auc_interval(positive, score, level=level)[:3]
        )
        label = f"{name}: {value} ({low}–{high})"
        self.ax_.plot(across, down, label=label, linewidth=1.7, **style)
        if band is not None:
            limits = roc_band(positive, score, kind=band, level=level)
            self.ax_.fill_between(limits.fpr, limits.low, limits.high, **faint(style))
        for rate in fpr:
            at = operating_point(positive, score, fpr=rate)
            self.ax_.plot(at.fpr, at.tpr, "o", color=style["color"], label="_point")

    def _dress(self) -> None:
        self.ax_.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":", label="_chance")
        self.ax_.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
        super()._dress()


class PrecisionRecallDisplay(Display):
    """Precision and recall; option: ``level``, the confidence level.

    Examples
    --------
    >>> from aucmax.report import PrecisionRecallDisplay
    >>> y, score = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> PrecisionRecallDisplay.from_predictions(y, score).ax_.get_ylabel()
    'Precision'
    """

    labels = ("Recall", "Precision")
    legend = "Average precision (confidence interval)"

    def _draw(
        self, positive: Any, score: Any, name: str, *, level: float = 0.95
    ) -> None:
        style = self._style()
        _, tp, fp = steps(positive, score)
        recall, precision = thinned(tp / tp[-1], tp / (tp + fp))
        found = average_precision_interval(positive, score, level=level)
        value, low, high = with_interval(*found)
        label = f"{name}: {value} ({low}–{high})"
        self.ax_.step(recall, precision, where="pre", label=label, lw=1.7, **style)
        self.ax_.axhline(np.mean(positive), color="0.6", lw=1, ls=":", label="_share")

    def _dress(self) -> None:
        self.ax_.set(xlim=(0.0, 1.0), ylim=(0.0, 1.02))
        super()._dress()


class GainsDisplay(Display):
    """Share of the positives found among the rows with the highest scores.

    Examples
    --------
    >>> from aucmax.report import GainsDisplay
    >>> y, score = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> GainsDisplay.from_predictions(y, score).ax_.get_xlabel()
    'Share of all rows called'
    """

    labels = ("Share of all rows called", "Share of positives found")
    place = "lower right"

    def _draw(self, positive: Any, score: Any, name: str) -> None:
        style = self._style()
        found = lift_curve(positive, score)
        share, gain = thinned(np.append(0.0, found.share), np.append(0.0, found.gain))
        self.ax_.plot(share, gain, label=name, linewidth=1.7, **style)

    def _dress(self) -> None:
        self.ax_.plot([0, 1], [0, 1], color="0.6", lw=1, ls=":", label="_chance")
        self.ax_.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        super()._dress()


class CalibrationDisplay(Display):
    """Predicted probabilities and observed shares, with intervals.

    Options: ``bins``, ``strategy`` and ``level``, as for
    :func:`aucmax.metrics.calibration_curve`.

    Examples
    --------
    >>> from aucmax.report import CalibrationDisplay
    >>> y, p = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> CalibrationDisplay.from_predictions(y, p, bins=2).ax_.get_xlabel()
    'Predicted probability'
    """

    labels = ("Predicted probability", "Share that is positive")
    place = "upper left"
    probabilities = True

    def _draw(
        self, positive: Any, score: Any, name: str, *, level: float = 0.95, **bins: Any
    ) -> None:
        style = self._style()
        found = calibration_curve(positive, score, level=level, **bins)
        bars = reach(found.observed, found.low, found.high)
        self.ax_.errorbar(
            found.probability,
            found.observed,
            yerr=bars,
            fmt="o",
            markersize=4,
            color=style["color"],
            label="_bins",
        )
        self.ax_.plot(found.probability, found.observed, label=name, **style)
        most = float(max(found.probability.max(), found.high.max()))
        self.ax_.plot([0, most], [0, most], color="0.6", lw=1, ls=":", label="_perfect")


class DecisionCurveDisplay(Display):
    """Net benefit by threshold probability.

    Options: ``thresholds`` and ``level``, as for :func:`aucmax.metrics.net_benefit`.

    Examples
    --------
    >>> from aucmax.report import DecisionCurveDisplay
    >>> y, p = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> DecisionCurveDisplay.from_predictions(y, p).ax_.get_ylabel()
    'Net benefit per row'
    """

    labels = ("Threshold probability", "Net benefit per row")
    percent = (True, False)
    place = "upper right"
    probabilities = True
    _top = 0.0  # of the axis

    def _draw(
        self, positive: Any, score: Any, name: str, *, level: float = 0.95, **grid: Any
    ) -> None:
        style = self._style()
        found = net_benefit(positive, score, level=level, **grid)
        self.ax_.plot(found.threshold, found.net_benefit, label=name, lw=1.7, **style)
        self.ax_.fill_between(found.threshold, found.low, found.high, **faint(style))
        # The band at high thresholds can be of any width: it is cut there.
        value = max(found.net_benefit.max(), found.treat_all[0], 1e-9)
        self._top = max(1.1 * float(value), 1.02 * float(found.high[0]), self._top)
        self._treat_all = found.threshold, found.treat_all

    def _dress(self) -> None:
        look = {"color": "0.4", "linewidth": 1, "linestyle": "dashed"}
        self.ax_.plot(*self._treat_all, label="all positive", **look)
        self.ax_.axhline(0.0, color="0.6", lw=1, ls=":", label="none positive")
        self.ax_.set_ylim(-0.1 * self._top, self._top)
        super()._dress()


class ScoresDisplay(Display):
    """Distribution of the scores of both classes; option: ``bins``.

    Examples
    --------
    >>> from aucmax.report import ScoresDisplay
    >>> y, score = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.8, 0.9]
    >>> ScoresDisplay.from_predictions(y, score).ax_.get_xlabel()
    'Score'
    """

    labels = ("Score", "Share of the class")
    percent = (False, True)

    def _draw(self, positive: Any, score: Any, name: str, *, bins: int = 40) -> None:
        finite = score[np.isfinite(score)]
        low, high = np.quantile(finite, (0.001, 0.999))
        edges = np.linspace(low, high, bins + 1)
        inside = np.clip(score, edges[0], edges[-1])
        for one, what in ((~positive, "negatives"), (positive, "positives")):
            counts, _ = np.histogram(inside[one], edges)
            style = self._style()
            label = what if name == "model" else f"{name}, {what}"
            share = counts / counts.sum()
            self.ax_.stairs(share, edges, fill=True, alpha=0.25, color=style["color"])
            self.ax_.step(edges, np.append(share[:1], share), label=label, **style)
