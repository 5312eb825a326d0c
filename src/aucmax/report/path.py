"""The path of a cross-validated penalty as a picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from aucmax.report.roc import COLOURS, headline, take_literally

_LARGEST = 8  # weights that get a colour and a name
_GREY = 200  # others that are drawn: more is a grey area
_LONGEST = 28  # letters of a name


def path_figure(model: Any, title: str = "", names: Sequence[str] | None = None) -> Any:
    """Draw AUC and weights over the penalties of a cross-validated estimator.

    Parameters
    ----------
    model : LeastSquaresAUCCV or BAMCV
        A fitted one.
    title : str, default=""
        Headline.
    names : sequence of str, default=None
        What the features are called; the model's own names if there are some, else
        their numbers.

    Returns
    -------
    matplotlib.figure.Figure
        Above, the AUC of each fold, their mean and a band of one standard error; below,
        the weights times the model's ``scale_``, so that units do not matter, the
        largest ones in colour. To save it, see :func:`aucmax.report.roc.save_figure`.
    """
    figure = Figure(figsize=(9.5, 7.0), layout="constrained")
    if title:
        headline(figure, title)
    area, weights = figure.subplots(2, 1, sharex=True)
    _draw_areas(area, model)
    _draw_weights(weights, model, names)
    weights.set(xscale="log", xlabel="l2 penalty")
    weights.invert_xaxis()  # from nothing to everything, left to right
    for axes in (area, weights):
        axes.axvline(model.l2_, color="0.4", linewidth=1.0, linestyle="dashed")
        axes.grid(color="0.92", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_areas(axes: Any, model: Any) -> None:
    path, folds = model.path_, model.scores_.shape[1]
    lines = axes.plot(path["l2"], model.scores_, color="0.8", linewidth=0.9)
    lines[0].set_label("one fold")
    low, high = path["auc"] - path["error"], path["auc"] + path["error"]
    axes.plot(
        path["l2"],
        path["auc"],
        color=COLOURS[0],
        linewidth=2.0,
        label=f"mean of {folds} folds",
    )
    if folds > 1:
        axes.fill_between(
            *(path["l2"], low, high),
            color=COLOURS[0],
            alpha=0.2,
            linewidth=0,
            label="± one standard error",
        )
    best = path["auc"].max()
    axes.set(ylabel="AUC on the folds left out")
    axes.set_title(f"Best mean AUC {best:.4f} at l2 = {model.l2_:.3g}", fontsize=11)
    _explain(axes, "AUC")


def _draw_weights(axes: Any, model: Any, names: Sequence[str] | None) -> None:
    paths = model.coef_path_ * model.scale_
    numbers = np.arange(paths.shape[1])
    known = getattr(model, "feature_names_in_", numbers) if names is None else names
    size = np.abs(paths).max(axis=0)
    order = np.argsort(-size, kind="stable")
    largest, others = order[:_LARGEST], order[_LARGEST : _LARGEST + _GREY]
    axes.plot(model.l2s_, paths[:, others], color="0.85", linewidth=0.7)
    for rank, feature in enumerate(largest):
        axes.plot(
            model.l2s_,
            paths[:, feature],
            color=COLOURS[rank % len(COLOURS)],
            linestyle="solid" if rank < len(COLOURS) else "dashed",
            linewidth=1.6,
            label=_short(str(known[feature])),
        )
    scaled = bool(np.any(model.scale_[model.scale_ != 0.0] != 1.0))
    axes.set(ylabel="Weight × spread of the feature" if scaled else "Weight")
    _explain(axes, "Largest weights")


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _explain(axes: Any, title: str) -> None:
    """Put a legend beside the picture, where it hides no line."""
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
