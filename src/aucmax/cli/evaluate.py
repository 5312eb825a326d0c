"""``aucmax evaluate``: how well a model ranks data with labels."""

import json
from collections.abc import Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.datasets import local_files
from aucmax.cli.screen import Screen, reading, some, table
from aucmax.io.malformed_lines import BadLines
from aucmax.metrics.decimals import decimals, with_interval
from aucmax.metrics.roc_steps import check_level, check_share
from aucmax.storage.atomic import refuse_overwriting, refuse_twice
from aucmax.workflows.evaluate import Evaluation, collect, evaluate
from aucmax.workflows.score import Model

_PICTURES = (".png", ".svg", ".pdf")
_MOST_GROUPS = 30  # in a table: JSON has them all


def run(
    model: Path,
    data: Sequence[str],
    *,
    positive: str | None,
    weight: str | None,
    options: dict[str, Any],
    at: str | None,
    max_fpr: float,
    by: str | None,
    level: float,
    plot: Path | None,
    on_bad_line: str,
    quarantine: Path | None,
    as_json: bool,
) -> None:
    """Score the data, measure, print."""
    lengths = None if at is None else [_length(word) for word in at.split(",")]
    check_share("--max-fpr", max_fpr)
    check_level(level)
    if plot is not None:
        _check_picture(plot)
    start = perf_counter()
    ranker = Model.load_for(model, data, "evaluate")
    local_files(data)  # a bar, if they have to be fetched
    source = ranker.open(
        data,
        keep_text=on_bad_line == "quarantine",
        extra=() if by is None else (by,),
        weight=weight,
        changes=options,
    )
    refuse_twice(quarantine, plot)
    for output in (quarantine, plot):
        if output is not None:
            refuse_overwriting(output, [*source.files, model])
    bad = BadLines(on_bad_line, quarantine)
    with closing(bad), reading(source.files) as watch:
        judged = collect(ranker, source, bad, watch, by, positive)
    found = evaluate(judged, at=lengths, max_fpr=max_fpr, level=level)
    seconds = perf_counter() - start
    screen = Screen(quiet=as_json)
    if as_json:
        report: dict[str, Any] = {"model": str(model), "data": source.files}
        report |= found.to_json() | {"by": by, "bad_lines": bad.count}
        report["trained_on"] = judged.learnt
        report["seconds"] = round(seconds, 3)
        print(json.dumps(report, indent=2, allow_nan=False))
    else:
        show(found, bad.count, by, screen)
    if remark := bad.remark():
        screen.warn(remark)
    if judged.learnt:
        screen.warn(
            f"Note: {', '.join(judged.learnt)}: these are rows that the model was "
            "trained on. Expect less of others."
        )
    if plot is not None:  # last: what goes wrong here must not cost the numbers
        _draw(found, type(ranker.estimator).__name__, ", ".join(source.files), plot)
        screen.print(f"Picture: {plot}", wrap=False)


def show(found: Evaluation, bad: int, by: str | None, screen: Screen) -> None:
    """Print what there is to say, for people."""
    area, level = found.auc, f"{_percent(found.level)} interval"
    weighted = found.weight is not None
    rows = "weight" if weighted else "rows"
    value, low, high = with_interval(*area[:3])
    places = decimals(area.low, area.high)  # of all measures of the ranking
    screen.print(f"AUC {value}, {level} {low} to {high}", style="bold")
    share = _percent(found.positives / found.rows)
    left_out = f"; {some(bad, 'bad line')} left out" if bad else ""
    screen.print(
        f"{some(found.rows, 'row')}, {found.positives:,} positive ({share}){left_out}"
    )
    if found.weight is not None:
        total, heavy = found.weight
        screen.print(
            f"Weighted: the rows weigh {total:,.6g}, the positives {heavy:,.6g} "
            f"({_percent(heavy / total)})"
        )
    screen.print(
        f"Partial AUC up to a false positive rate of {_percent(found.max_fpr)}: "
        f"{found.standardised:.{places}f} (area {found.partial:.{places + 1}f})"
    )
    screen.print(
        f"Average precision {found.average_precision:.{places}f}; precision = recall = "
        f"{found.breakeven:.{places}f}"
    )
    tops = table("top", rows, "precision", level, "lift", "recall")
    for top in found.tops:
        precision, low, high = with_interval(*top.precision)
        tops.add_row(
            f"{top.k:,}" if isinstance(top.k, int) else _percent(top.k),
            f"{top.rows:,.0f}",
            precision,
            f"{low}–{high}",
            f"{top.lift:.3g}",
            _percent(top.recall),
        )
    screen.show(tops)
    points = table("threshold for", "score ≥", "found", "false", "precision", rows)
    for purpose, wanted, point in found.points:
        of_model = purpose == "threshold"
        points.add_row(
            "the model's classes" if of_model else f"fpr ≤ {_percent(wanted)}",
            "> 0" if of_model else f"{point.threshold:.5g}",
            _percent(point.tpr),
            _percent(point.fpr),
            f"{point.precision:.{places}f}" if point.rows else "–",
            f"{point.rows:,.0f}",
        )
    screen.show(points)
    screen.print(
        "found: share of the positives; false: share of the negatives", style="dim"
    )
    if by is not None:
        screen.print()
        screen.show(_groups(found, by, level))
        if len(found.groups) > _MOST_GROUPS:
            more = len(found.groups) - _MOST_GROUPS
            screen.print(
                f"… and {some(more, 'smaller group')}: --json has all", style="dim"
            )


def _groups(found: Evaluation, by: str, level: str) -> Any:
    groups = table(by, "AUC", level, "rows", "positive")
    for group in found.groups[:_MOST_GROUPS]:
        only = "positives" if group.positives else "negatives"
        area, interval = "–", f"{only} only"
        if group.auc is not None:
            area, low, high = with_interval(*group.auc[:3])
            interval = f"{low}–{high}"
        groups.add_row(
            group.name,
            area,
            interval,
            f"{group.rows:,}",
            f"{group.positives:,}",
        )
    return groups


def _length(word: str) -> int | float:
    """Return 100 for "100", 0.01 for "0.01" or "1%"."""
    try:
        if word.strip().endswith("%"):
            return float(word.strip()[:-1]) / 100.0
        return float(word) if "." in word or "e" in word.lower() else int(word)
    except ValueError:
        raise ValueError(
            f"--at {word}: it has to be a number of rows, as 100, or a share, as 0.01."
        ) from None


def _percent(share: float) -> str:
    return f"{100.0 * share:.3g} %" if share < 0.9995 else f"{100.0 * share:.5g} %"


def _check_picture(path: Path) -> None:
    """Raise an error now if there would be one when all is read."""
    if path.suffix.lower() not in _PICTURES:
        raise ValueError(f"--plot {path}: a picture ends in {', '.join(_PICTURES)}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"Cannot write {path}: there is no such folder.")
    if find_spec("matplotlib") is None:
        raise ImportError("A picture needs matplotlib: pip install 'aucmax[plot]'")


def _draw(found: Evaluation, name: str, title: str, path: Path) -> None:
    from aucmax.metrics.curves import roc_points
    from aucmax.report.roc import Curve, roc_figure, save_figure

    fpr, tpr, _ = roc_points(found.ranking)
    area = found.drawn
    curve = Curve(name, fpr, tpr, area.value, area.low, area.high)
    try:
        save_figure(roc_figure([curve], title), path)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(f"{path} could not be drawn: {error}") from error
