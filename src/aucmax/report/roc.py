"""ROC curves as a picture.

Figures are made without pyplot: no global state is touched, and no display is needed.
"""

import warnings
from collections.abc import Iterable, Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from aucmax.metrics import AUCInterval, roc_curve
from aucmax.metrics.decimals import with_interval
from aucmax.storage.atomic import write_atomically

# Okabe and Ito's colours, told apart by the colour-blind too; no yellow on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_LONGEST = 90  # letters of a headline
# Good models have almost the same curve: dashes let the one below show through.
DASHES = ("solid", (0, (6, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2)), (0, (1, 1)))


class Curve(NamedTuple):
    """A ROC curve with its area."""

    name: str
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    auc: float
    low: float  # ends of its 95 % interval
    high: float

    @classmethod
    def of(
        cls, name: str, y: ArrayLike, score: ArrayLike, area: AUCInterval
    ) -> "Curve":
        """Return the curve of some scores, whose area is known."""
        fpr, tpr, _ = roc_curve(y, score)
        return cls(name, fpr, tpr, area.value, area.low, area.high)


def roc_figure(curves: Sequence[Curve], title: str, least_fpr: float = 1e-4) -> Any:
    """Draw ROC curves, once as usual and once with a logarithmic false positive rate.

    Parameters
    ----------
    curves : sequence of Curve
        The legend lists them by falling AUC.
    title : str
        Headline.
    least_fpr : float, default=1e-4
        Where the logarithmic axis begins. When positives are rare, that end of the
        curve is the one that is used.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = Figure(figsize=(11.0, 5.6), layout="constrained")
    headline(figure, title)
    linear, logarithmic = figure.subplots(1, 2)
    chance = np.geomspace(least_fpr, 1.0, 200)
    for axes in (linear, logarithmic):
        axes.plot(chance, chance, color="0.6", linewidth=1.0, linestyle="dotted")
    by_area = sorted(curves, key=lambda curve: -curve.auc)
    for curve, colour, dashes in zip(
        by_area, cycle(COLOURS), cycle(DASHES), strict=False
    ):
        area, low, high = with_interval(curve.auc, curve.low, curve.high)
        label = f"{area} ({low}–{high})  {curve.name}"
        for axes in (linear, logarithmic):
            axes.plot(
                curve.fpr,
                curve.tpr,
                color=colour,
                linestyle=dashes,
                linewidth=1.7,
                label=label,
            )
    linear.set(xlim=(0.0, 1.0), title="All rows", aspect="equal")
    legend = linear.legend(
        loc="lower right",
        fontsize=8.5,
        title="AUC (95 % interval)",
        title_fontsize=8.5,
        alignment="left",
        framealpha=0.95,
    )
    take_literally(legend.get_texts())
    logarithmic.set(xscale="log", xlim=(least_fpr, 1.0), title="The top of the ranking")
    logarithmic.set_box_aspect(1)
    for axes in (linear, logarithmic):
        dress_roc(axes)
    return figure


def headline(figure: Any, title: str) -> None:
    """Put a title above, whatever is in it: names of files have all kinds of signs."""
    text = title if len(title) <= _LONGEST else f"{title[: _LONGEST - 1]}…"
    take_literally([figure.suptitle(text, fontsize=13, fontweight="bold")])


def take_literally(texts: Iterable[Any]) -> None:
    """Let dollars be dollars, not formulas, and bytes that are no text be marks."""
    for text in texts:
        text.set_parse_math(False)
        text.set_text(text.get_text().encode(errors="replace").decode())


def dress_roc(axes: Any) -> None:
    """Label the axes of a ROC curve."""
    axes.set_ylim(0.0, 1.0)
    axes.set_xlabel("False positive rate")
    axes.set_ylabel("True positive rate")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _: f"{100.0 * share:g} %")
    axes.grid(color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.title.set_fontsize(11)
    axes.spines[["top", "right"]].set_visible(False)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write ``figure`` to ``path``, whole or not at all, as its name says."""
    picture = BytesIO()
    with warnings.catch_warnings():
        # A sign that the font lacks becomes a box; there is nothing to do about it.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(picture, format=Path(path).suffix[1:].lower(), dpi=150)
    write_atomically(path, picture.getvalue())
