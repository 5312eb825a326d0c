"""Base class of the displays: plots of scores in the style of scikit-learn."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from aucmax.metrics._ranking import as_scores, positives

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
