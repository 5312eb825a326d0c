"""Plots of ROC curves.

Figures are made without pyplot: no global state is changed, and no display is needed.
"""

import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from aucmax.metrics._ranking import with_interval
from aucmax.storage.atomic import write_atomically

# Okabe and Ito's colours, safe for colour-blind readers, without yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Good models have nearly equal curves: dashes show the one below.
DASHES = ("solid", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1)))
_MAX_TITLE = 90  # characters


class Curve(NamedTuple):
    """A ROC curve with its AUC and the 95 % confidence interval."""

    name: str
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    auc: float
    low: float
    high: float


def roc_figure(curves: Sequence[Curve], title: str, least_fpr: float = 1e-4) -> Any:
    """Plot ROC curves, with a linear and a logarithmic false positive rate.

    Parameters
    ----------
    curves : sequence of Curve
        The legend lists them by decreasing AUC.
    title : str
        Title of the figure.
    least_fpr : float, default=1e-4
        Start of the logarithmic axis, which shows the top of the ranking.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = Figure(figsize=(11.0, 5.6), layout="constrained")
    headline(figure, title)
    linear, logarithmic = figure.subplots(1, 2)
    linear.set(xlim=(0.0, 1.0), title="All rows", aspect="equal")
    logarithmic.set(xscale="log", xlim=(least_fpr, 1.0), title="Top of the ranking")
    logarithmic.set_box_aspect(1)
    chance = np.geomspace(least_fpr, 1.0, 200)
    by_auc = sorted(curves, key=lambda curve: -curve.auc)
    for axes in (linear, logarithmic):
        axes.plot(chance, chance, color="0.6", linewidth=1.0, linestyle="dotted")
        looks = zip(by_auc, cycle(COLOURS), cycle(DASHES), strict=False)
        for curve, colour, dashes in looks:
            area, low, high = with_interval(curve.auc, curve.low, curve.high)
            axes.plot(
                curve.fpr,
                curve.tpr,
                color=colour,
                linestyle=dashes,
                linewidth=1.7,
                label=f"{area} ({low}–{high})  {curve.name}",
            )
        dress_roc(axes)
    legend = linear.legend(
        loc="lower right",
        fontsize=8.5,
        title="AUC (95 % confidence interval)",
        title_fontsize=8.5,
        alignment="left",
        framealpha=0.95,
    )
    take_literally(legend.get_texts())
    return figure


def headline(figure: Any, title: str) -> None:
    """Set the title of a figure; it may contain any characters."""
    text = title if len(title) <= _MAX_TITLE else f"{title[: _MAX_TITLE - 1]}…"
    take_literally([figure.suptitle(text, fontsize=13, fontweight="bold")])


def take_literally(texts: Iterable[Any]) -> None:
    """Show dollar signs as such, not as formulas, and replace invalid characters."""
    for text in texts:
        text.set_parse_math(False)
        text.set_text(text.get_text().encode(errors="replace").decode())


def dress_roc(axes: Any) -> None:
    """Label the axes of a ROC curve."""
    axes.set(ylim=(0.0, 1.0), xlabel="False positive rate", ylabel="True positive rate")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
    style_axes(axes)


def style_axes(axes: Any) -> None:
    """Draw a light grid below the lines, and no frame at the top and right."""
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.title.set_fontsize(11)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure atomically, in the format of the file name's ending."""
    content = BytesIO()
    with warnings.catch_warnings():
        # A character that the font lacks becomes a box.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(content, format=Path(path).suffix[1:].lower(), dpi=150)
    write_atomically(path, content.getvalue())
