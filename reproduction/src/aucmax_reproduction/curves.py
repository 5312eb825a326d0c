"""Data of the figures: learning curves, and AUC against a parameter."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.svm import LinearSVC

from aucmax.metrics import auc
from aucmax.registry import named
from aucmax_reproduction.fitting import (
    Effort,
    Ready,
    best_accuracy,
    fit_model,
    prepared,
    scores,
    seeded,
)
from aucmax_reproduction.lines import Line
from aucmax_reproduction.protocol import IMBALANCE, OURS, Picture, Recipe
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.reproduce import why_missing

_LOOKS = 12  # points on the curve of an online learner
_PASSES = (1, 2, 4, 8, 16)  # of other learners
_FEW = 30  # rows of each class for a first fit that compiles


class Curve(NamedTuple):
    """AUC on test rows at several points."""

    name: str
    at: list[float]  # training rows, or values of a parameter
    seconds: list[float]  # training time
    auc: list[float]  # or accuracy; NaN: diverged


Seconds = dict[str, float]  # by algorithm


def curves(source: str, picture: Picture, dataset: str, effort: Effort) -> list[Curve]:
    """Return the curves of a figure, on the first split of a set.

    Parameters
    ----------
    source : str
        The paper.
    picture : Picture
        Figure of the paper.
    dataset : str
        Set of the table that the figure belongs to.
    effort : Effort
        Limits on the rows.

    Returns
    -------
    list of Curve
        One per algorithm.
    """
    ready = prepared(source, picture.table, dataset, "", 0, effort)
    if picture.kind == IMBALANCE:
        return imbalance_curves(picture.values, ready, effort.seed)
    _, plan = protocol(source).plan(picture.table)
    found = []
    for name in picture.algorithms:
        recipe = plan.recipes.get(name, Recipe(name))
        with warnings.catch_warnings(action="ignore"):
            if picture.parameter:
                found += [parameter_curve(name, recipe, picture, ready, effort.seed)]
            else:
                found += [
                    learning_curve(name, recipe.model(OURS, {}), ready, effort.seed)
                ]
    return found


def drawable(source: str, picture: Picture, datasets: Sequence[str] = ()) -> list[str]:
    """Return the sets that a figure can be drawn for, filtered by ``datasets``."""
    _, plan = protocol(source).plan(picture.table)
    return [
        name
        for name, subject in plan.subjects.items()
        if not (subject.unknown or subject.cannot or why_missing(subject))
        and (not datasets or name in datasets)
    ]


def mean_seconds(picture: Picture, lines: Iterable[Line]) -> dict[str, Seconds]:
    """Return the mean seconds to train, by set and algorithm."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        name = line["algorithm"]
        place = line["table"], line["form"]
        if place == (picture.table, picture.form) and name in picture.algorithms:
            times = found.setdefault(line["dataset"], {}).setdefault(name, [])
            times += [line["train_seconds"]] if "train_seconds" in line else []
    return {
        dataset: {name: float(np.mean(times[name])) for name in times if times[name]}
        for dataset, times in found.items()
    }


def imbalance_curves(ratios: Iterable[float], ready: Ready, seed: int) -> list[Curve]:
    """Return test accuracy against the ratio of negatives to positives in training.

    One linear model maximises the AUC, and its threshold is that of the best operating
    point on the test rows; the other one is a linear SVM with its own threshold.
    """
    rng = np.random.default_rng(seed)
    ups = rng.permutation(np.flatnonzero(ready.y))
    downs = np.flatnonzero(~ready.y)
    pairwise = Curve("BAM at the best operating point", [], [], [])
    plain = Curve("linear SVM", [], [], [])
    for ratio in ratios:
        rows = np.concatenate([ups[: max(int(len(downs) / ratio), 2)], downs])
        X, y = ready.X[rows], ready.y[rows]
        score = scores(named("BAM").fit(X, y), ready.X_test)
        found = best_accuracy(ready.y_test, score)
        svm = LinearSVC(random_state=seed).fit(X, y)
        right = float(np.mean(svm.predict(ready.X_test) == ready.y_test))
        for curve, accuracy in ((pairwise, found), (plain, right)):
            curve.at.append(ratio)
            curve.auc.append(accuracy)
    return [pairwise, plain]


def learning_curve(name: str, model: Any, ready: Ready, seed: int) -> Curve:
    """Return AUC against training rows, and seconds without compilation."""
    seeded(model, seed)
    streams = hasattr(model, "partial_fit")
    looks = _of_stream(model, ready) if streams else _of_passes(model, ready)
    rows, seconds, areas = zip(*looks, strict=True)
    return Curve(name, list(rows), list(seconds), list(areas))


def parameter_curve(
    name: str, recipe: Recipe, picture: Picture, ready: Ready, seed: int
) -> Curve:
    """Return AUC against the values of a parameter; NaN if the learner diverges."""
    found = Curve(name, [], [], [])
    for value in picture.values:
        start = perf_counter()
        try:
            choice = {picture.parameter: value}
            model = fit_model(recipe, picture.form, choice, ready.X, ready.y, seed)
            seconds, area = perf_counter() - start, _area(model, ready)
        except (ArithmeticError, ValueError):
            seconds, area = np.nan, np.nan
        for values, one in zip(found[1:], (value, seconds, area), strict=True):
            values.append(one)
    return found


def _of_stream(model: Any, ready: Ready) -> Iterator[tuple[float, float, float]]:
    """Yield rows, seconds and AUC of an online learner during the stream."""
    n = len(ready.y)
    ends = np.unique(np.geomspace(min(100, n), n, _LOOKS).astype(int))
    classes, few = [False, True], _few(ready)
    clone(model).partial_fit(ready.X[few], ready.y[few], classes=classes)
    start, seconds = 0, 0.0
    for end in ends:
        X, y = ready.X[start:end], ready.y[start:end]
        began = perf_counter()
        model.partial_fit(X, y, classes=classes)
        seconds += perf_counter() - began
        yield float(end), seconds, _area(model, ready)
        start = end


def _of_passes(model: Any, ready: Ready) -> Iterator[tuple[float, float, float]]:
    """Yield rows, seconds and AUC of fits with increasing numbers of passes."""
    few = _few(ready)
    clone(model).fit(ready.X[few], ready.y[few])
    for passes in _PASSES:
        fresh = clone(model).set_params(max_iter=passes)
        began = perf_counter()
        fresh.fit(ready.X, ready.y)
        seconds = perf_counter() - began
        yield float(passes * len(ready.y)), seconds, _area(fresh, ready)


def _few(ready: Ready) -> Any:
    ups, downs = np.flatnonzero(ready.y)[:_FEW], np.flatnonzero(~ready.y)[:_FEW]
    return np.concatenate([ups, downs])


def _area(model: Any, ready: Ready) -> float:
    return float(auc(ready.y_test, scores(model, ready.X_test)))
