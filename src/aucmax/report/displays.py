"""Displays: plots of scores and results in the style of scikit-learn.

Curves (ROC, precision and recall, gains, calibration, decisions), scores, AUC by group
and time, and importances. Those of scores have ``from_predictions`` and
``from_estimator`` and take several models at once; all draw into given axes with
``ax=``. They need ``pip install 'aucmax[plot]'``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics._ranking import as_scores, positives, steps, with_interval
from aucmax.metrics.auc import AUCInterval, auc_interval
from aucmax.metrics.calibration import calibration_curve
from aucmax.metrics.curves import Kind, roc_band, roc_curve
from aucmax.metrics.decisions import net_benefit, operating_point
from aucmax.metrics.groups import auc_by_group
from aucmax.metrics.top import average_precision_interval, lift_curve
from aucmax.tables.periods import periods

_MAX_POINTS = 2000  # of a drawn line

# Okabe and Ito's colours, safe for colour-blind readers, without yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Good models have nearly equal curves: dashes show the one below.
DASHES = ("solid", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1)))


class Display:
    """Base class of the displays: axes, legend, and both ways to make one.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes with the plot.
    figure_ : matplotlib Figure
        The figure of the axes.
    """

    labels: ClassVar[tuple[str, str]]
    percent: ClassVar[tuple[bool, bool]] = (True, True)
    legend: ClassVar[str | None] = None  # title
    place: ClassVar[str] = "best"  # of the legend
    probabilities: ClassVar[bool] = False  # whether scores must be probabilities
    _draw: Callable[..., None]  # of labels, scores and the name of one model

    def __init__(self, ax: Any = None) -> None:
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        score: ArrayLike | Mapping[str, ArrayLike],
        *,
        ax: Any = None,
        name: str = "model",
        pos_label: object = None,
        **options: Any,
    ) -> Self:
        """Plot scores, or probabilities, that are given.

        Parameters
        ----------
        y : array-like of shape (n_rows,)
            Labels of two classes.
        score : array-like of shape (n_rows,), or dict of them by name of the model
            Scores of one model or of several.
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        name : str, default="model"
            Name of a single model in the legend.
        pos_label : label, optional
            Positive class; by default the larger label.
        **options
            Options of the display.

        Returns
        -------
        display
            With attributes ``ax_`` and ``figure_``.
        """
        models = score if isinstance(score, Mapping) else {name: score}
        positive = positives(y, pos_label)
        display = cls(ax)
        for one, values in models.items():
            display._draw(positive, as_scores(values, positive.size), one, **options)
        display._dress()
        return display

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        ax: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Plot the scores of fitted estimators.

        Parameters
        ----------
        estimator : estimator, or dict of them by name
            Fitted classifiers with ``decision_function`` or ``predict_proba``.
        X : array-like, sparse matrix or data frame
            Rows that were not used for training.
        y : array-like of shape (n_rows,)
            Their labels.
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        name : str, optional
            Name of a single model in the legend; by default its class.
        **options
            Options of the display.

        Returns
        -------
        display
            With attributes ``ax_`` and ``figure_``.
        """
        models = estimator
        if not isinstance(estimator, Mapping):
            models = {name or type(estimator).__name__: estimator}
        scores = {
            one: _scores(model, X, cls.probabilities) for one, model in models.items()
        }
        positive = next(iter(models.values())).classes_[1]
        return cls.from_predictions(y, scores, ax=ax, pos_label=positive, **options)

    def _style(self) -> dict[str, Any]:
        """Return colour and dashes of the next model in these axes."""
        count = sum(
            not line.get_label().startswith("_") for line in self.ax_.get_lines()
        )
        return {
            "color": COLOURS[count % len(COLOURS)],
            "linestyle": DASHES[count % len(DASHES)],
        }

    def _dress(self) -> None:
        across, down = self.labels
        self.ax_.set(xlabel=across, ylabel=down)
        axes = (self.ax_.xaxis, self.ax_.yaxis)
        for axis, percent in zip(axes, self.percent, strict=True):
            if percent:
                axis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
        style_axes(self.ax_)
        if self.ax_.get_legend_handles_labels()[0]:
            look = {"fontsize": "small", "title_fontsize": "small", "frameon": False}
            legend = self.ax_.legend(title=self.legend, loc=self.place, **look)
            take_literally(legend.get_texts())


def _scores(model: Any, X: Any, probabilities: bool) -> Any:
    if probabilities or not hasattr(model, "decision_function"):
        return model.predict_proba(X)[:, 1]
    return model.decision_function(X)


def thinned(*columns: Any) -> list[Any]:
    """Return every so many points of long columns, the last one included."""
    n = len(columns[0])
    if n <= _MAX_POINTS:
        return list(columns)
    at = np.unique(
        np.concatenate(
            [
                np.linspace(0, n - 1, _MAX_POINTS // 2).astype(np.intp),
                np.geomspace(1, n, _MAX_POINTS // 2).astype(np.intp) - 1,
            ]
        )
    )
    return [column[at] for column in columns]


def faint(style: dict[str, Any]) -> dict[str, Any]:
    """Return the look of a band around a line."""
    return {"color": style["color"], "alpha": 0.12, "linewidth": 0}


def reach(value: Any, low: Any, high: Any) -> Any:
    """Return the lengths of error bars; rounding could make them negative."""
    return np.maximum([value - low, high - value], 0.0)


def take_literally(texts: Iterable[Any]) -> None:
    """Show dollar signs as such, not as formulas, and replace invalid characters."""
    for text in texts:
        text.set_parse_math(False)
        text.set_text(text.get_text().encode(errors="replace").decode())


def style_axes(axes: Any) -> None:
    """Draw a light grid below the lines, and no frame at the top and right."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.title.set_fontsize(11)
    axes.spines[["top", "right"]].set_visible(False)


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


_MAX_LEVEL = 6  # names of groups that are not turned


class GroupsDisplay(Display):
    """AUC of each group or period, with confidence intervals.

    Options: ``group`` (the group of each row) or ``time`` (its date), and ``level``.

    Examples
    --------
    >>> from aucmax.report import GroupsDisplay
    >>> y, score = [0, 1, 0, 1, 0, 1, 1, 0], [1, 2, 3, 2, 1, 4, 3, 2]
    >>> group = ["a"] * 4 + ["b"] * 4
    >>> GroupsDisplay.from_predictions(y, score, group=group).ax_.get_ylabel()
    'AUC'
    """

    labels = ("", "AUC")
    percent = (False, False)

    def _draw(
        self,
        positive: Any,
        score: Any,
        name: str,
        *,
        group: ArrayLike | None = None,
        time: ArrayLike | None = None,
        level: float = 0.95,
    ) -> None:
        if time is not None and group is None:
            found = auc_by_group(positive, score, periods(time), level=level).groups
            found.sort(key=lambda one: str(one.group))
        elif group is not None and time is None:
            found = auc_by_group(positive, score, group, level=level).groups
        else:
            raise ValueError("give one of group and time")
        self._plot([str(one.group) for one in found], [one.auc for one in found], name)
        if time is not None:
            self.ax_.get_lines()[-1].set_linestyle("solid")

    def _plot(self, names: list[str], areas: list[AUCInterval], label: str) -> None:
        value, low, high = (np.array([one[k] for one in areas]) for k in range(3))
        at = np.arange(len(names))
        style = self._style()
        bars, color = reach(value, low, high), style["color"]
        self.ax_.errorbar(at, value, yerr=bars, fmt="o", color=color, label="_groups")
        self.ax_.plot(at, value, color=color, linestyle="none", label=label)
        many = {"rotation": 45, "ha": "right"} if len(names) > _MAX_LEVEL else {}
        self.ax_.set_xticks(at, names, **many)
        take_literally(self.ax_.get_xticklabels())


class ImportanceDisplay(Display):
    """Importance of each column of an AUCClassifier, with confidence intervals.

    Option: ``top``, the number of columns (default 15).

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import AUCClassifier
    >>> from aucmax.report import ImportanceDisplay
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = AUCClassifier(random_state=0).fit(X, X[:, 0] > 0.5)
    >>> ImportanceDisplay.from_estimator(model).ax_.get_xlabel()
    'Loss of AUC when the column is shuffled'
    """

    labels = ("Loss of AUC when the column is shuffled", "")
    percent = (False, False)

    @classmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Not available: importances belong to an estimator."""
        raise TypeError("importances belong to an estimator: use from_estimator")

    @classmethod
    def from_estimator(  # type: ignore[override]
        cls, estimator: Any, *, ax: Any = None, top: int = 15
    ) -> Self:
        """Plot the importances of a fitted AUCClassifier.

        Parameters
        ----------
        estimator : AUCClassifier
            A fitted classifier with ``importances_``.
        ax : matplotlib Axes, optional
            Axes to draw into; by default those of a new figure.
        top : int, default=15
            Number of columns.

        Returns
        -------
        display
            With attributes ``ax_`` and ``figure_``.
        """
        display = cls(ax)
        found = sorted(estimator.importances_, key=lambda one: -one.drop)[:top][::-1]
        drop = np.array([one.drop for one in found])
        low, high = (np.array([one[k] for one in found]) for k in (2, 3))
        at = np.arange(len(found))
        bars = reach(drop, low, high)
        display.ax_.errorbar(drop, at, xerr=bars, fmt="o", color=COLOURS[0])
        display.ax_.axvline(0.0, color="0.6", lw=1, ls=":")
        display.ax_.set_yticks(at, [one.column for one in found])
        take_literally(display.ax_.get_yticklabels())
        display._dress()
        return display
