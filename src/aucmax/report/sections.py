"""Sections of the report after the threshold: models, groups, time, columns, card.

Each returns its name, its heading and its HTML; the HTML is empty if there is nothing.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from math import inf, isfinite

import numpy as np

from aucmax.metrics._ranking import decimals
from aucmax.report.html_parts import as_text, html_table, with_digits
from aucmax.report.summary import ModelSummary, Summary
from aucmax.report.svg import Chart, forest

_MAX_GROUPS = 30
_MAX_COLUMNS = 20  # with an importance


def models(summary: Summary, level: str) -> tuple[str, str, str]:
    """Return the comparison of models."""
    if len(summary.models) < 2:
        return "models", "", ""
    rows = []
    for model in sorted(summary.models, key=partial(_rank, summary.goal)):
        value, low, high = with_digits(*model.auc[:3])
        test = ["–", "–", "–"]
        if model.against_first is not None:
            apart = model.against_first
            places = decimals(apart.low, apart.high)
            test = [
                f"{apart.difference:+.{places}f}",
                f"{apart.low:+.{places}f} to {apart.high:+.{places}f}",
                f"{apart.pvalue:.2g}",
            ]
        goal = []
        if summary.goal:
            goal = ["–", "–"]
            if model.goal is not None:
                reached, least, most = with_digits(*model.goal)
                goal = [reached, f"{least} to {most}"]
        rows.append([model.name, *goal, value, f"{low} to {high}", *test])
    first = summary.models[0].name
    goals = [summary.goal, f"{level} CI"] if summary.goal else []
    heads = ["model", *goals, "AUC", f"{level} CI"]
    heads += [f"AUC minus {first}", f"{level} CI", "p"]
    note = "p: DeLong's paired test, not corrected for several models."
    return "models", "Comparison of models", html_table(heads, rows, caption=note)


def _rank(goal: str, model: ModelSummary) -> float:
    """Return what models are sorted by: highest goal first, those without it last."""
    if not goal:
        return -model.auc.value
    return inf if model.goal is None else -model.goal.value


def groups(summary: Summary, level: str) -> tuple[str, str, str]:
    """Return the AUC within groups."""
    found = summary.groups
    if found is None:
        return "groups", "", ""
    shown = found.groups[:_MAX_GROUPS]
    names = [str(one.group).strip() or "(missing)" for one in shown]
    rows = []
    for name, one in zip(names, shown, strict=True):
        value, low, high = with_digits(*one.auc[:3])
        limits = f"{low} to {high}" if isfinite(one.auc.value) else "one class only"
        rows.append([name, value, limits, f"{one.rows:,}", f"{one.positives:,}"])
    test = ""
    if isfinite(found.pvalue):
        verdict = "differ" if found.pvalue < 1.0 - summary.level else "may be equal"
        test = (
            f"<p>The AUCs of the groups {verdict}: chi-squared "
            f"{found.statistic:.3g}, p = {found.pvalue:.2g}.</p>"
        )
    more = len(found.groups) - len(shown)
    rest = f"<p>… and {more:,} smaller groups.</p>" if more > 0 else ""
    chart = forest(
        names,
        [one.auc[:3] for one in shown],
        "AUC of each group with its confidence interval",
        summary.models[0].auc.value,
    )
    heads = ["group", "AUC", f"{level} CI", "rows", "positive"]
    body = (
        f'{test}<div class="charts"><figure>{chart}<figcaption>AUC within groups. '
        f"Dotted: all rows.</figcaption></figure><div>{html_table(heads, rows)}"
        f"{rest}</div></div>"
    )
    return "groups", "Groups", body


def time(summary: Summary, level: str) -> tuple[str, str, str]:
    """Return the AUC over time, and the stability of the scores."""
    periods = summary.periods
    if not periods:
        return "time", "Time", ""
    rows = []
    for one in periods:
        value, low, high = with_digits(*one.auc[:3])
        limits = f"{low} to {high}" if isfinite(one.auc.value) else "one class only"
        counts = [f"{one.rows:,}", f"{one.positives:,}"]
        rows.append([one.name, value, limits, *counts, f"{one.stability:.3f}"])
    areas = np.array([one.auc[:3] for one in periods])
    known = np.isfinite(areas[:, 0])
    chart = ""
    if known.any():
        least, most = float(areas[known, 1].min()), float(areas[known, 2].max())
        pad = 0.05 * (most - least) + 1e-3
        figure = Chart(
            "time",
            (0.5, len(rows) + 0.5),
            (max(0.0, least - pad), min(1.0, most + pad)),
            ("Period", "AUC"),
            "AUC by period with its confidence interval",
            (False, False),
            {place + 1.0: one.name for place, one in enumerate(periods)},
        )
        at = np.arange(1, len(rows) + 1)
        overall = summary.models[0].auc.value
        figure.line([0.5, len(rows) + 0.5], [overall, overall], "chance")
        figure.bars(at[known], areas[known, 1], areas[known, 2], "error")
        figure.line(at[known], areas[known, 0], "m0")
        figure.dots(at[known], areas[known, 0], "dot")
        chart = (
            f"<figure>{figure.text()}<figcaption>AUC by period.</figcaption></figure>"
        )
    heads = ["period", "AUC", f"{level} CI", "rows", "positive", "PSI"]
    note = (
        "PSI: population stability index of the scores against the first period; above "
        "0.1 is a moderate shift, above 0.25 a large one."
    )
    table = html_table(heads, rows, caption=note)
    return "time", "Time", f'<div class="charts">{chart}<div>{table}</div></div>'


def importances(
    importances: Sequence[tuple[str, float, float, float]],
) -> tuple[str, str, str]:
    """Return the importance of columns."""
    if not importances:
        return "importance", "", ""
    ordered = sorted(importances, key=lambda one: -one[1])[:_MAX_COLUMNS]
    chart = forest(
        [str(one[0]) for one in ordered],
        [one[1:4] for one in ordered],
        "Importance of each column with its confidence interval",
        0.0,
    )
    rows = [
        [str(name), f"{value:.4f}", f"{low:.4f} to {high:.4f}"]
        for name, value, low, high in ordered
    ]
    table = html_table(["column", "loss of AUC", "CI"], rows)
    return (
        "importance",
        "Importance of columns",
        '<p class="soft">Loss of AUC if the values of a column are shuffled among the '
        "rows. Columns that say the same share their importance.</p>"
        f'<div class="charts"><figure>{chart}</figure><div>{table}</div></div>',
    )


def card(card: Mapping[str, Mapping[str, object]]) -> tuple[str, str, str]:
    """Return the model card."""
    parts = [
        f"<h3>{escape(str(section))}</h3>"
        + html_table(
            ["", ""], [[str(k), as_text(v)] for k, v in facts.items()], words=True
        )
        for section, facts in card.items()
        if facts
    ]
    return "card", "Model card", "".join(parts)
