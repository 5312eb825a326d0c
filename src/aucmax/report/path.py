"""The path of a cross-validated penalty as a picture."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aucmax.report.roc import COLOURS, headline, take_literally

_LARGEST = 8  # weights that get a colour and a name


def path_figure(model: Any, title: str = "") -> Any:
    """Draw AUC and weights over the penalties of a cross-validated estimator.

    Parameters
    ----------
    model : LeastSquaresAUCCV
        A fitted one.
    title : str, default=""
        Headline.

    Returns
    -------
    matplotlib.figure.Figure
        Above, the AUC of each fold, their mean and its standard error; below, the
        weights, the largest ones in colour. To save it, see
        :func:`aucmax.report.roc.save_figure`.
    """
    path, chosen = model.path_, model.l2_
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    if title:
        headline(figure, title)
    area, weights = figure.subplots(2, 1, sharex=True)
    area.plot(path["l2"], model.scores_, color="0.8", linewidth=0.9)
    low, high = path["auc"] - path["error"], path["auc"] + path["error"]
    area.fill_between(path["l2"], low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    area.plot(path["l2"], path["auc"], color=COLOURS[0], linewidth=2.0)
    best = path["auc"].max()
    area.set(ylabel="AUC on the folds left out")
    area.set_title(f"Best mean AUC {best:.4f} at l2 = {chosen:.3g}", fontsize=11)
    _draw_weights(weights, model)
    weights.set(xscale="log", xlabel="l2 penalty", ylabel="Weight")
    weights.invert_xaxis()  # from nothing to everything, left to right
    for axes in (area, weights):
        axes.axvline(chosen, color="0.4", linewidth=1.0, linestyle="dashed")
        axes.grid(color="0.92", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_weights(axes: Any, model: Any) -> None:
    paths = model.coef_path_
    names = getattr(model, "feature_names_in_", np.arange(paths.shape[1]))
    size = np.abs(paths).max(axis=0)
    largest = np.argsort(-size, kind="stable")[:_LARGEST]
    others = np.delete(paths, largest, axis=1)[:, :200]  # more is a grey area
    axes.plot(model.l2s_, others, color="0.85", linewidth=0.7)
    for rank, feature in enumerate(largest):
        axes.plot(
            model.l2s_,
            paths[:, feature],
            color=COLOURS[rank % len(COLOURS)],
            linestyle="solid" if rank < len(COLOURS) else "dashed",
            linewidth=1.6,
            label=str(names[feature]),
        )
    legend = axes.legend(
        fontsize=8.5,
        title="Largest weights: feature",
        title_fontsize=8.5,
        alignment="left",
        ncols=2,
        framealpha=0.95,
        loc="upper left",
    )
    take_literally(legend.get_texts())
