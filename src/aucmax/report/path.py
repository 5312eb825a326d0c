"""Plots of regularization paths."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aucmax.report.roc import COLOURS, headline, style_axes, take_literally

_MAX_NAMED = 8  # weights with a colour and a name
_MAX_GREY = 200  # other weights that are drawn
_MAX_NAME = 28  # characters


def path_figure(model: Any, title: str = "", names: Sequence[str] | None = None) -> Any:
    """Plot AUC and weights over the penalties of a cross-validated estimator.

    Parameters
    ----------
    model : LeastSquaresAUCCV or BAMCV
        A fitted estimator.
    title : str, default=""
        Title of the figure.
    names : sequence of str, default=None
        Feature names (default: ``feature_names_in_``, or numbers).

    Returns
    -------
    matplotlib.figure.Figure
        Above, the AUC of each fold, their mean and one standard error; below, the
        weights times the model's ``scale_``, comparable between units, with the largest
        ones in colour. :func:`aucmax.report.roc.save_figure` saves it.
    """
    figure = Figure(figsize=(9.5, 7.0), layout="constrained")
    if title:
        headline(figure, title)
    above, below = figure.subplots(2, 1, sharex=True)
    _plot_aucs(above, model)
    _plot_weights(below, model, names)
    below.set(xscale="log", xlabel="l2 penalty")
    below.invert_xaxis()  # weights grow from left to right
    for axes in (above, below):
        axes.axvline(model.l2_, color="0.4", linewidth=1.0, linestyle="dashed")
        style_axes(axes)
    return figure


def _plot_aucs(axes: Any, model: Any) -> None:
    path, folds = model.path_, model.scores_.shape[1]
    l2, mean, error = path["l2"], path["auc"], path["error"]
    lines = axes.plot(l2, model.scores_, color="0.8", linewidth=0.9)
    lines[0].set_label("one fold")
    label = f"mean of {folds} folds"
    axes.plot(l2, mean, color=COLOURS[0], linewidth=2.0, label=label)
    if folds > 1:
        look = {"color": COLOURS[0], "alpha": 0.2, "linewidth": 0}
        label = "± one standard error"
        axes.fill_between(l2, mean - error, mean + error, label=label, **look)
    axes.set_ylabel("AUC on held-out folds")
    axes.set_title(f"Best mean AUC {mean.max():.4f} at l2 = {model.l2_:.3g}")
    _add_legend(axes, "AUC")


def _plot_weights(axes: Any, model: Any, names: Sequence[str] | None) -> None:
    paths = model.coef_path_ * model.scale_
    numbers = range(paths.shape[1])
    known = getattr(model, "feature_names_in_", numbers) if names is None else names
    order = np.argsort(-np.abs(paths).max(axis=0), kind="stable")
    others = order[_MAX_NAMED : _MAX_NAMED + _MAX_GREY]
    axes.plot(model.l2s_, paths[:, others], color="0.85", linewidth=0.7)
    for rank, feature in enumerate(order[:_MAX_NAMED]):
        axes.plot(
            model.l2s_,
            paths[:, feature],
            color=COLOURS[rank % len(COLOURS)],
            linestyle="solid" if rank < len(COLOURS) else "dashed",
            linewidth=1.6,
            label=_shortened(str(known[feature])),
        )
    scaled = bool(np.any(model.scale_[model.scale_ != 0.0] != 1.0))
    axes.set_ylabel("Weight × standard deviation of feature" if scaled else "Weight")
    _add_legend(axes, "Largest weights")


def _shortened(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"


def _add_legend(axes: Any, title: str) -> None:
    """Add a legend beside the axes, where it hides no line."""
    legend = axes.legend(
        fontsize=8.5,
        title=title,
        title_fontsize=8.5,
        alignment="left",
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )
    take_literally(legend.get_texts())
