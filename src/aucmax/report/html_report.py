"""The report: one HTML file that shows how well scores rank, and what thresholds do.

The file needs no network and no scripts; a small script moves the threshold. Its
Content-Security-Policy allows this script and style sheet only, by their checksums.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import aucmax
from aucmax.goals import Goal
from aucmax.goals import parse as parse_goal
from aucmax.metrics._ranking import exact
from aucmax.report import sections
from aucmax.report.html_parts import as_percent, html_table, with_digits
from aucmax.report.summary import ESTIMATED, Summary, explorer, summarise
from aucmax.report.svg import Chart
from aucmax.storage.atomic import write_atomically
from aucmax.tables.periods import periods
from aucmax.thresholds import Threshold

_MAX_COLOURS = 6
# Control characters, and those that turn the direction of the text after them.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_FIRST = (
    "AUC",
    "Average precision",
    "Recall at a false positive rate of 1 %",
    "Recall at a false positive rate of 5 %",
    "Precision of the top 100 rows",
    "Calibration slope",
)


def html(
    y: ArrayLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    path: str | Path,
    *,
    probability: ArrayLike | None = None,
    group: ArrayLike | None = None,
    time: ArrayLike | None = None,
    goal: str | Goal = "auc",
    threshold: Threshold | None = None,
    importances: Iterable[tuple[str, float, float, float]] = (),
    card: Mapping[str, Mapping[str, object]] | None = None,
    title: str = "How well the scores rank",
    held_out: str = "",
    level: float = 0.95,
    pos_label: object = None,
) -> None:
    """Write a report on scores to one HTML file.

    The file is self-contained: it loads nothing, works without JavaScript, and has
    aggregated numbers only, no rows. With JavaScript a slider moves the threshold.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes, of rows that were not used for training.
    scores : array-like of shape (n_rows,), or dict of them by name of the model
        Scores; the first model is reported, the others are compared with it.
    path : str or path
        The file to write.
    probability : array-like of shape (n_rows,), optional
        Calibrated probabilities of the first model, for calibration and net benefit; by
        default its scores, if all are between 0 and 1.
    group : array-like of shape (n_rows,), optional
        Group of each row: AUC within groups, and a test of equality.
    time : array-like of shape (n_rows,), optional
        Dates, or names of periods that sort in order: AUC and shift by period.
    goal : str or goal, default="auc"
        What the ranking is for, see :mod:`aucmax.goals`: it is reported first, and
        models are sorted by it.
    threshold : Threshold, optional
        A threshold of the first model with a promise, from
        :func:`aucmax.thresholds.choose` or ``AUCClassifier.threshold_``: the report
        says whether the promise held on these rows, and starts there.
    importances : iterable of (name, value, low, high), optional
        Importance of each column: the loss of AUC without it, with its interval.
    card : dict of dict, optional
        Facts for the model card, by section.
    title : str
        Title of the page.
    held_out : str, optional
        What the rows are, such as "rows of March 2024"; part of the first sentence.
    level : float, default=0.95
        Confidence level.
    pos_label : label, optional
        Positive class; by default the larger label.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from aucmax import report
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(500) < 0.2
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/report.html"
    ...     report.html(y, {"model": y + rng.normal(size=500)}, path)
    """
    named = scores if isinstance(scores, Mapping) else {"model": scores}
    summary = summarise(
        y,
        named,
        probability=probability,
        group=group,
        period=None if time is None else periods(np.asarray(time)),
        goal=parse_goal(goal),
        threshold=threshold,
        level=level,
        pos_label=pos_label,
    )
    text = page(summary, title, held_out, list(importances), card or {})
    text = _CONTROLS.sub("\ufffd", text)
    write_atomically(path, text.encode(errors="replace"))


def page(
    summary: Summary,
    title: str,
    held_out: str,
    importances: Sequence[tuple[str, float, float, float]],
    card: Mapping[str, Mapping[str, object]],
) -> str:
    """Return the report as HTML."""
    charts = _charts(summary)
    level = f"{100 * summary.level:g} %"
    data = {
        "level": level,
        "rows": summary.rows,
        "positives": summary.positives,
        "start": _start(summary),
        "explorer": explorer(summary),
        "charts": {chart.name: chart.scale() for chart in charts},
        "measures": {
            one.name: [x if isfinite(x) else None for x in one[1:4]]
            for one in summary.measures
        },
        "models": {one.name: list(one.auc[:3]) for one in summary.models},
        "version": aucmax.__version__,
    }
    # "<" would end the element, and start a comment or another one.
    embedded = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    style, script = (_asset(name) for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src '{_checksum(style)}'; "
        f"script-src '{_checksum(script)}'; base-uri 'none'; form-action 'none'"
    )
    parts = [
        _threshold(summary, charts, level),
        _measures(summary, level),
        sections.models(summary, level),
        sections.groups(summary, level),
        sections.time(summary, level),
        sections.importances(importances),
        sections.card(card),
    ]
    shown = [(name, heading, body) for name, heading, body in parts if body]
    links = "".join(f'<a href="#{name}">{heading}</a>' for name, heading, _ in shown)
    body = "".join(
        f'<section id="{name}"><h2>{heading}</h2>{body}</section>'
        for name, heading, body in shown
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="generator" content="aucmax {escape(aucmax.__version__)}">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>"
        f"<header><h1>{escape(title)}</h1>{_sentence(summary, held_out, level)}"
        f"{_cards(summary, level)}<nav>{links}</nav></header><main>{body}</main>"
        f'<footer class="soft"><p>Made by aucmax {escape(aucmax.__version__)}. The '
        "file holds aggregated numbers only, and loads nothing.</p></footer>"
        f'<script type="application/json" id="data">{embedded}</script>'
        f"<script>{script}</script></body></html>"
    )


def _asset(name: str) -> str:
    return (files("aucmax.report") / "assets" / name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _start(summary: Summary) -> int:
    """Return where the slider starts: at the promised threshold, or the highest F1."""
    if summary.threshold is not None:
        above = [point.threshold >= summary.threshold.value for point in summary.points]
        return max(sum(above) - 1, 0)
    best = next(point for name, point in summary.named_points if name == "highest F1")
    places = [abs(point.tp + point.fp - best.tp - best.fp) for point in summary.points]
    return int(np.argmin(places))


def _sentence(summary: Summary, held_out: str, level: str) -> str:
    main = summary.models[0]
    value, low, high = with_digits(*main.auc[:3])
    share = summary.positives / summary.rows
    where = f" ({escape(held_out)})" if held_out else ""
    return (
        f'<p class="lead"><b>{escape(main.name)}</b> ranks a random positive above a '
        f"random negative with probability <b>{value}</b> (AUC; {level} confidence "
        f"interval {low} to {high}), measured on {summary.rows:,} rows{where}, of "
        f"which {summary.positives:,} ({as_percent(share)}) are positive.</p>"
        f"{_goal(summary, level)}"
    )


def _goal(summary: Summary, level: str) -> str:
    """Return a sentence on the goal, and one on the promise of the threshold."""
    found = []
    if (reached := summary.models[0].goal) is not None:
        value, low, high = with_digits(*reached)
        found.append(
            f"The goal <b>{escape(summary.goal)}</b> is <b>{value}</b> ({level} "
            f"confidence interval {low} to {high})."
        )
    if summary.threshold is not None and summary.verdict is not None:
        rate, verdict = summary.verdict
        value, low, high = (as_percent(x) for x in rate)
        found.append(
            f"The threshold, score ≥ {exact(summary.threshold.value)}, promises "
            f"{escape(str(summary.threshold.promise))} with confidence "
            f"{100 * summary.threshold.confidence:g} %: <b>{verdict}</b>. On these "
            f"rows it is {value} ({low} to {high})."
        )
    return f'<p class="lead">{" ".join(found)}</p>' if found else ""


def _cards(summary: Summary, level: str) -> str:
    """Return the measures that most readers look for, as cards."""
    cards = []
    for one in summary.measures:
        if one.name in _FIRST:
            value, low, high = with_digits(one.value, one.low, one.high)
            estimated = ", threshold estimated" if one.remark == ESTIMATED else ""
            cards.append(
                f'<div class="dial"><span class="name">{escape(one.name)}</span>'
                f"<b>{value}</b><small>{level} CI {low} to {high}{estimated}</small>"
                "</div>"
            )
    return f'<div class="dials">{"".join(cards)}</div>'


def _measures(summary: Summary, level: str) -> tuple[str, str, str]:
    rows = []
    for one in summary.measures:
        value, low, high = with_digits(one.value, one.low, one.high)
        limits = f"{low} to {high}" if isfinite(one.low) else "–"
        rows.append([one.name, value, limits, one.remark])
    heads = ["measure", "value", f"{level} CI", "note"]
    return "measures", "All measures", html_table(heads, rows)


def _threshold(
    summary: Summary, charts: list[Chart], level: str
) -> tuple[str, str, str]:
    def dial(name: str, label: str, more: str = "") -> str:
        extra = f'<small id="at-{more}"></small>' if more else ""
        return (
            f'<div class="dial"><span class="name">{label}</span>'
            f'<output id="at-{name}"></output>{extra}</div>'
        )

    def field(name: str, label: str, value: str) -> str:
        return (
            f'<div class="dial"><label for="{name}">{label}</label>'
            f'<input id="{name}" type="number" step="any" value="{value}"></div>'
        )

    head = (
        "<p>A row is called positive (an alert) if its score is at least the "
        "threshold.</p>"
    )
    slider = (
        '<div class="slider needs-script"><label for="slider">Threshold: few alerts on '
        "the left, many on the right. The address of this page keeps the position."
        '</label><input id="slider" type="range" min="0" value="0"></div>'
    )
    live = (
        f'<div class="explorer needs-script"><div class="dials">'
        f"{dial('threshold', 'Threshold (score)', 'probability')}"
        f"{dial('alerts', 'Alerts per day', 'alert-share')}"
        f"{dial('recall', 'Recall: positives found', 'recall-range')}"
        f"{dial('precision', 'Precision: alerts that hit', 'precision-range')}"
        f"{dial('fpr', 'False positive rate', 'fpr-range')}"
        f"{dial('money', 'Money per day', 'per-hit')}</div>"
        f'<div class="dials">{field("rows-per-day", "Rows per day", str(summary.rows))}'
        f"{field('gain', 'Gain of a positive found', '10')}"
        f"{field('cost', 'Cost of a false alert', '1')}"
        f"{field('most-alerts', 'Go to: alerts per day', '')}"
        f"{field('least-recall', 'Go to: recall in %', '')}</div>"
        '<div class="scroll"><table><caption>Rows of the data at this threshold'
        "</caption><thead><tr><th></th><th>called positive</th><th>called negative</th>"
        '</tr></thead><tbody><tr><th>positive</th><td id="at-tp"></td>'
        '<td id="at-fn"></td></tr><tr><th>negative</th><td id="at-fp"></td>'
        '<td id="at-tn"></td></tr></tbody></table></div>'
        '<p class="soft">Alerts and money per day assume that the rows of a day are '
        "like these. Intervals are Wilson's, for a threshold chosen beforehand; one "
        "chosen because it looks best here looks too good.</p></div>"
    )
    rows = []
    for name, point in summary.named_points:
        counts = [f"{x:,.0f}" for x in (point.tp, point.fp, point.fn, point.tn)]
        rates = [
            f"{as_percent(rate.value)} "
            f"({as_percent(rate.low)} to {as_percent(rate.high)})"
            if isfinite(rate.value)
            else "–"
            for rate in (point.recall, point.precision, point.fpr)
        ]
        shown = exact(point.threshold) if isfinite(point.threshold) else "above all"
        rows.append([name, shown, *rates, *counts])
    heads = ["threshold for", "score ≥", "recall", "precision", "FPR"]
    heads += ["TP", "FP", "FN", "TN"]
    note = (
        f"Thresholds that people ask for, with {level} confidence intervals for a "
        "fixed threshold (Wilson). The recall at a false positive rate, above and in "
        "All measures, has an interval for a threshold that is estimated."
    )
    return (
        "threshold",
        "What happens at a threshold?",
        head
        + slider
        + live
        + _figures(summary, charts)
        + html_table(heads, rows, note),
    )


def _charts(summary: Summary) -> list[Chart]:
    main, band = summary.models[0], summary.band
    roc = Chart(
        "roc",
        (0.0, 1.0),
        (0.0, 1.0),
        ("False positive rate", "Recall (true positive rate)"),
        f"ROC curve of {main.name}",
    )
    roc.band(band.fpr, band.low, band.high, "band")
    roc.line([0.0, 1.0], [0.0, 1.0], "chance")
    rate = summary.positives / summary.rows
    recall = Chart(
        "precision-recall",
        (0.0, 1.0),
        (0.0, 1.0),
        ("Recall", "Precision"),
        f"Precision and recall of {main.name}",
    )
    recall.line([0.0, 1.0], [rate, rate], "chance")
    gains = Chart(
        "gains",
        (0.0, 1.0),
        (0.0, 1.0),
        ("Share of all rows called", "Share of positives found"),
        f"Cumulative gains of {main.name}",
    )
    gains.line([0.0, 1.0], [0.0, 1.0], "chance")
    for place, model in reversed(list(enumerate(summary.models[:_MAX_COLOURS]))):
        kind = f"m{place}"
        roc.line(model.fpr, model.tpr, kind)
        recall.line(model.tpr[1:], model.precision, kind)
        gains.line(model.share, model.tpr, kind)
    tallest = float(max(summary.bin_pos.max(), summary.bin_neg.max()))
    scores = Chart(
        "scores",
        (float(summary.bins[0]), float(summary.bins[-1])),
        (0.0, 1.05 * tallest),
        ("Score", "Share of the class"),
        "Distribution of the scores of positives and negatives",
        (False, True),
    )
    edges = np.repeat(summary.bins, 2)[1:-1]
    scores.line(edges, np.repeat(summary.bin_neg, 2), "negative")
    scores.line(edges, np.repeat(summary.bin_pos, 2), "m0")
    charts = [roc, recall, gains, scores]
    if summary.calibration is not None:
        charts.append(_calibration(summary.calibration))
    if summary.decision is not None:
        charts.append(_decision(summary.decision))
    return charts


def _calibration(curve: Any) -> Chart:
    most = min(1.0, 1.1 * float(max(curve.probability.max(), curve.high.max())))
    chart = Chart(
        "calibration",
        (0.0, most),
        (0.0, most),
        ("Predicted probability", "Share that is positive"),
        "Calibration: predicted probabilities and observed shares",
    )
    chart.line([0.0, most], [0.0, most], "chance")
    chart.bars(curve.probability, curve.low, curve.high, "error")
    chart.line(curve.probability, curve.observed, "m0")
    chart.dots(curve.probability, curve.observed, "dot")
    return chart


def _decision(curve: Any) -> Chart:
    top = 1.1 * float(max(curve.net_benefit.max(), curve.treat_all.max(), 1e-9))
    chart = Chart(
        "decision",
        (0.0, float(curve.threshold[-1])),
        (-0.15 * top, top),
        ("Threshold probability", "Net benefit per row"),
        "Decision curve: net benefit by threshold probability",
        (True, False),
    )
    chart.band(curve.threshold, curve.low, curve.high, "band")
    chart.line([0.0, curve.threshold[-1]], [0.0, 0.0], "chance")
    shown = curve.treat_all >= -0.15 * top
    chart.line(curve.threshold[shown], curve.treat_all[shown], "m1")
    chart.line(curve.threshold, curve.net_benefit, "m0")
    return chart


_CAPTIONS = {
    "roc": "ROC curve. Band: pointwise confidence interval. Dotted: chance.",
    "precision-recall": "Precision and recall. Dotted: share of positives.",
    "gains": "Gains: positives found among the rows with the highest scores.",
    "scores": "Scores of positives (solid) and negatives (dashed).",
    "calibration": "Calibration, ten bins with equally many rows. Dotted: perfect.",
    "decision": "Decision curve. Dashed: call every row positive. Dotted: call none.",
}


def _figures(summary: Summary, charts: list[Chart]) -> str:
    names = [model.name for model in summary.models[:_MAX_COLOURS]]
    keys = ""
    if len(names) > 1:
        keys = "".join(
            f'<span class="key k{place}"></span>{escape(name)} &nbsp; '
            for place, name in enumerate(names)
        )
        keys = f"<p>{keys}</p>"
    figures = "".join(
        f"<figure>{chart.text()}<figcaption>{_CAPTIONS[chart.name]}</figcaption></figure>"
        for chart in charts
    )
    return f'{keys}<div class="charts">{figures}</div>'
