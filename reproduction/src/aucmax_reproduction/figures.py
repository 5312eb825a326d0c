"""Plots of learning curves and of AUC against a parameter."""

import warnings
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aucmax.report.displays import COLOURS, DASHES, take_literally
from aucmax.storage.atomic import write_atomically
from aucmax_reproduction.curves import Curve, Seconds

_MAX_TITLE = 90  # characters
_DECADES = 1.5  # wider ranges get a logarithmic axis


def learning_figure(curves: Sequence[Curve], title: str) -> Any:
    """Plot AUC against training rows and against seconds.

    Parameters
    ----------
    curves : sequence of Curve
        From :func:`aucmax_reproduction.curves.learning_curve`.
    title : str
        Title.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    headline(figure, title)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, label in ((left, "Rows learnt"), (right, "Seconds")):
        places = [c.at if axes is left else c.seconds for c in curves]
        _draw(axes, curves, places)
        axes.set(xlabel=label)
    _explain(left)
    left.set(ylabel="AUC on test rows")
    return figure


def parameter_figure(
    curves: Sequence[Curve], title: str, parameter: str, measure: str = "AUC"
) -> Any:
    """Plot AUC, or another measure, against the values of a parameter.

    Parameters
    ----------
    curves : sequence of Curve
        From :func:`aucmax_reproduction.curves.parameter_curve`.
    title, parameter, measure : str
        Title, label of the values, and measure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A cross at the bottom marks divergence.
    """
    figure = Figure(figsize=(7.0, 4.9), layout="constrained")
    headline(figure, title)
    axes = figure.subplots()
    _draw(axes, curves, [curve.at for curve in curves])
    axes.set(xlabel=parameter, ylabel=f"{measure} on test rows")
    _explain(axes)
    return figure


def time_figure(seconds: Mapping[str, Seconds], title: str) -> Any:
    """Plot the seconds to train as bars, by set and algorithm.

    Parameters
    ----------
    seconds : mapping
        From :func:`aucmax_reproduction.curves.mean_seconds`.
    title : str
        Title.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, with a logarithmic axis.
    """
    algorithms = list(
        dict.fromkeys(name for times in seconds.values() for name in times)
    )
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    headline(figure, title)
    axes = figure.subplots()
    width = 0.8 / len(algorithms)
    for k, (name, colour) in enumerate(zip(algorithms, cycle(COLOURS), strict=False)):
        heights = [times.get(name, np.nan) for times in seconds.values()]
        places = np.arange(len(seconds)) + (k - (len(algorithms) - 1) / 2) * width
        axes.bar(places, heights, width, color=colour, label=name)
    axes.set_xticks(range(len(seconds)), list(seconds))
    axes.set(ylabel="Seconds to train", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    _explain(axes)
    return figure


def _draw(
    axes: Any, curves: Sequence[Curve], places: Sequence[Sequence[float]]
) -> None:
    looks = zip(curves, places, cycle(COLOURS), cycle(DASHES), strict=False)
    for curve, at, colour, dashes in looks:
        axes.plot(
            at,
            curve.auc,
            color=colour,
            linestyle=dashes,
            marker="o",
            markersize=4,
            label=curve.name,
        )
        lost = [x for x, area in zip(at, curve.auc, strict=True) if np.isnan(area)]
        if lost:  # at the bottom of the plot
            foot = {"transform": axes.get_xaxis_transform(), "clip_on": False}
            label = f"{curve.name} diverged"
            axes.plot(lost, [0.0] * len(lost), "x", color=colour, label=label, **foot)
    every = np.concatenate([np.asarray(at, float) for at in places])
    if every.min() > 0.0 and np.log10(every.max() / every.min()) > _DECADES:
        axes.set_xscale("log")
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _explain(axes: Any) -> None:
    take_literally(axes.legend(loc="best", frameon=False).get_texts())


def headline(figure: Any, title: str) -> None:
    """Set the title of a figure; it may contain any characters."""
    text = title if len(title) <= _MAX_TITLE else f"{title[: _MAX_TITLE - 1]}…"
    take_literally([figure.suptitle(text, fontsize=13, fontweight="bold")])


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure atomically, in the format of the file name's ending."""
    content = BytesIO()
    with warnings.catch_warnings():
        # A character that the font lacks becomes a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(content, format=Path(path).suffix[1:].lower(), dpi=150)
    write_atomically(path, content.getvalue())
