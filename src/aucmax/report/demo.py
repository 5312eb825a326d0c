"""The figure of ``aucmax demo``: ROC curves of a table, AUC of a stream."""

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from aucmax.metrics import AUCInterval
from aucmax.report.roc import COLOURS, DASHES, Curve, dress_roc, style_axes


def demo_figure(
    curves: Sequence[Curve],
    checks: Sequence[tuple[int, AUCInterval]],
    baseline: str,
    baseline_auc: float,
) -> Any:
    """Plot ROC curves, and AUC against the number of rows beside a baseline's AUC."""
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    for curve, colour, dashes in zip(curves, COLOURS, DASHES, strict=False):
        label = f"{curve.auc:.4f}  {curve.name}"
        left.plot(curve.fpr, curve.tpr, color=colour, linestyle=dashes, label=label)
    left.set(xscale="log", xlim=(1e-3, 1.0), title="A table: which digits are odd?")
    dress_roc(left)
    left.legend(loc="lower right", title="AUC", alignment="left", frameon=False)
    rows, areas = zip(*checks, strict=True)
    low, high = [area.low for area in areas], [area.high for area in areas]
    right.fill_between(rows, low, high, color=COLOURS[0], alpha=0.15, linewidth=0.0)
    right.plot(
        rows,
        [area.value for area in areas],
        color=COLOURS[0],
        marker="o",
        label="AUCStream, one pass (95 % confidence interval)",
    )
    label = f"{baseline}, all rows at once"
    right.axhline(baseline_auc, color=COLOURS[2], linestyle=DASHES[1], label=label)
    right.set(
        xscale="log",
        xlabel="Training rows",
        ylabel="Test AUC",
        title="A stream: one per cent positives",
    )
    style_axes(right)
    right.legend(loc="lower right", frameon=False)
    return figure
