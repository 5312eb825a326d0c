"""The picture of ``aucmax demo``: a table and a stream, side by side."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from aucmax.metrics import AUCInterval
from aucmax.report.roc import COLOURS, DASHES, Curve, dress_roc

_LEAST_FPR = 1e-3


def demo_figure(
    curves: Sequence[Curve],
    looks: Sequence[tuple[int, AUCInterval]],
    rival: str,
    area: AUCInterval,
) -> Any:
    """Draw ROC curves, and AUC against rows with that of a ``rival`` on all of them."""
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for curve, colour, dashes in zip(curves, COLOURS, DASHES, strict=False):
        label = f"{curve.auc:.4f}  {curve.name}"
        left.plot(curve.fpr, curve.tpr, color=colour, linestyle=dashes, label=label)
    left.set(
        xscale="log", xlim=(_LEAST_FPR, 1.0), title="A table: which digits are odd?"
    )
    dress_roc(left)
    left.legend(loc="lower right", title="AUC", alignment="left", frameon=False)
    rows = [count for count, _ in looks]
    areas = [one for _, one in looks]
    right.fill_between(
        rows,
        [one.low for one in areas],
        [one.high for one in areas],
        color=COLOURS[0],
        alpha=0.15,
        linewidth=0.0,
    )
    right.plot(
        rows,
        [one.value for one in areas],
        color=COLOURS[0],
        marker="o",
        label="AUCStream, one pass (band: 95 %)",
    )
    right.axhline(
        area.value,
        color=COLOURS[2],
        linestyle=DASHES[1],
        label=f"{rival}, all rows at once",
    )
    right.set(
        xscale="log",
        xlabel="Rows learnt",
        ylabel="AUC on other rows",
        title="A stream: one per cent positives",
    )
    right.grid(color="0.9", linewidth=0.8)
    right.set_axisbelow(True)
    right.title.set_fontsize(11)
    right.spines[["top", "right"]].set_visible(False)
    right.legend(loc="lower right", frameon=False)
    return figure
