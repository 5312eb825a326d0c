"""Result tables as Markdown, HTML and CSV."""

import csv
import io
from collections.abc import Iterable, Iterator
from html import escape
from typing import NamedTuple

from aucmax_reproduction import papers
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.protocol import FORMS
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.verdict import (
    ABOVE,
    BELOW,
    COMPARED,
    FAILED,
    INCOMPARABLE,
    LEVEL,
    NOT_RUN,
    SAME,
    Match,
    Report,
    Verdict,
)

_METRICS = {
    papers.AUC: "AUC",
    papers.ACCURACY: "accuracy at the best operating point",
    papers.SECONDS: "seconds to train",
}
_COLOURS = {SAME: "#c9e8d0", ABOVE: "#e3ecf7", BELOW: "#f9d9d3", FAILED: "#f3e3c3"}
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;"
    "padding:0 1em;color:#222}table{border-collapse:collapse;margin:1em 0}"
    "th,td{padding:.25em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}"
    "code{background:#f4f4f4;padding:.1em .3em}"
)


class Box(NamedTuple):
    """Text of a table cell, and the verdict that sets its colour."""

    text: str
    verdict: str = ""


class Section(NamedTuple):
    """A table with its title, command and notes."""

    title: str
    command: str
    columns: list[str]
    rows: list[list[Box]]
    notes: list[str]


def sections(report: Report) -> list[Section]:
    """Return the tables of the paper, then the t-tests."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for one in report.verdicts:
        groups.setdefault((one.printed.table, one.printed.metric), []).append(one)
    tables = [_table(report, *place, verdicts) for place, verdicts in groups.items()]
    return tables + ([_tests(report.matches)] if report.matches else [])


def counts(report: Report) -> list[str]:
    """Return the number of cells per verdict of each form, as text."""
    texts = []
    for form, description in FORMS.items():
        compared = [
            v for v in report.verdicts if v.form == form and v.verdict in COMPARED
        ]
        if compared:
            texts.append(f"{description.capitalize()}: {verdict_text(compared)}.")
    cannot = {v.printed for v in report.verdicts if v.verdict == INCOMPARABLE}
    number = sum(cell.metric != papers.SECONDS for cell in cannot)
    return texts + ([f"{number} cells are not comparable."] if number else [])


def verdict_text(found: list[Verdict]) -> str:
    """Return the numbers of cells per verdict, and what is known of those below."""
    numbers = {name: sum(v.verdict == name for v in found) for name in COMPARED}
    text = f"{numbers[SAME]} of {len(found)} cells the same, {numbers[ABOVE]} above, "
    text += f"{numbers[BELOW]} below"
    explained = sum(v.explained for v in found)
    chance = sum(v.chance and not v.explained for v in found)
    if explained or chance:
        text += f" ({explained} explained, {chance} within chance)"
    if numbers[FAILED]:
        text += f", {numbers[FAILED]} with failed runs"
    tested = [v.welch for v in found if v.welch is not None]
    if tested:
        equal = sum(p_value >= LEVEL for p_value in tested)
        text += f"; Welch's test finds no difference in {equal} of {len(tested)}"
    return text


def effort_of(report: Report) -> str:
    """Return the limits on the effort, as a sentence."""
    text = effort_text(report.effort, report.wanted.runs)
    return f"{text[0].upper()}{text[1:]}."


def effort_text(effort: Effort, runs: int | None = None) -> str:
    """Return the limits on the effort."""
    limits = {
        "runs of a cell": runs,
        "values of a parameter": effort.grid,
        "rows to tune by": effort.tune_rows,
        "rows to train on": effort.rows,
    }
    parts = [f"{most:,} {what}" for what, most in limits.items() if most is not None]
    return f"at most {', '.join(parts)}" if parts else "the paper's whole effort"


def commands_of(report: Report, table: str, found: list[Verdict]) -> str:
    """Return the commands that rerun a table, one for each selection in it."""
    ran: dict[tuple[str, str], list[Verdict]] = {}  # by set and form
    for one in found:
        if one.runs or one.failures:
            ran.setdefault((one.printed.dataset, one.form), []).append(one)
    forms: dict[tuple[str, tuple[str, ...], int], list[str]] = {}
    for (dataset, form), verdicts in ran.items():
        algorithms = tuple(dict.fromkeys(one.printed.algorithm for one in verdicts))
        runs = max(one.runs + len(one.failures) for one in verdicts)
        forms.setdefault((dataset, algorithms, runs), []).append(form)
    sets: dict[tuple[tuple[str, ...], int, tuple[str, ...]], list[str]] = {}
    for (dataset, algorithms, runs), names in forms.items():
        sets.setdefault((algorithms, runs, tuple(names)), []).append(dataset)
    could = [v.printed for v in found if v.runs or v.failures or v.verdict == NOT_RUN]
    every = {cell.dataset for cell in could}, {cell.algorithm for cell in could}
    reports = [
        report.wanted._replace(
            datasets=() if set(names) == every[0] else tuple(names),
            algorithms=() if set(algorithms) == every[1] else algorithms,
            forms=which,
            runs=runs,
        )
        for (algorithms, runs, which), names in sets.items()
    ]
    commands = [report._replace(wanted=one) for one in reports or [report.wanted]]
    return "\n".join(command_of(one, table) for one in commands)


def command_of(report: Report, table: str | None = None) -> str:
    """Return the command for a table."""
    wanted, effort = report.wanted, report.effort
    words = [f"python -m aucmax_reproduction {wanted.source}"]
    tables = (table,) if table else wanted.tables
    cells = papers.cells(wanted.source, tables)
    there = {cell.dataset for cell in cells}, {cell.algorithm for cell in cells}
    lists = {
        "table": tables,
        "datasets": [name for name in wanted.datasets if name in there[0]],
        "algorithms": [name for name in wanted.algorithms if name in there[1]],
        "forms": wanted.forms,
    }
    words += [f"--{name} {','.join(given)}" for name, given in lists.items() if given]
    numbers = {"runs": wanted.runs or 0, "grid": effort.grid or 0}
    numbers |= {"tune-rows": effort.tune_rows or 0, "rows": effort.rows or 0}
    numbers |= {"seed": effort.seed}
    words += [f"--{name} {value}" for name, value in numbers.items()]
    words += [f"--data {text}" for text in wanted.data]
    return " ".join([*words, *(["--search"] if wanted.search else [])])


def published_text(cell: papers.Printed) -> str:
    """Return a published mean and its deviation."""
    return _mean(cell.mean, cell.std)


def box_text(one: Verdict) -> str:
    """Return our mean, the difference, the verdict and the p-value of Welch's test."""
    parts = []
    if one.mean is not None:
        parts += [f"{_mean(one.mean, one.std)} ({one.difference:+.4f})"]
    if one.failures:
        diverged = all(text.startswith("DivergenceError") for text in one.failures)
        what = "diverged" if diverged else "failed"
        runs = one.runs + len(one.failures)
        parts += [f"{one.runs} of {runs}, {len(one.failures)} {what}"]
    elif one.verdict in COMPARED:
        parts += [one.verdict]
    if one.welch is not None and one.verdict in COMPARED:
        parts += [f"p {one.welch:.2f}"]
    return " ".join(parts)


def as_csv(report: Report) -> str:
    """Return the verdicts as CSV, one line per cell and form."""
    rows = [one.summary() for one in report.verdicts]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_markdown(report: Report) -> str:
    """Return the tables as Markdown."""
    return "\n".join(_markdown(report)) + "\n"


def as_html(report: Report) -> str:
    """Return the tables as one self-contained HTML page."""
    source = escape(report.wanted.source)
    body = "\n".join(_html(report))
    return (
        f"<!doctype html>\n<html lang=en><meta charset=utf-8><title>{source}</title>\n"
        f"<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _table(report: Report, table: str, metric: str, found: list[Verdict]) -> Section:
    forms = [form for form in FORMS if any(one.form == form for one in found)]
    cells: dict[papers.Printed, dict[str, Verdict]] = {}
    reasons: dict[str, list[str]] = {}
    for one in found:
        place = f"{one.printed.dataset} {one.printed.algorithm}"
        if one.mean is not None or one.failures:
            cells.setdefault(one.printed, {})[one.form] = one
        if one.reason and place not in reasons.setdefault(one.reason, []):
            reasons[one.reason].append(place)
    ran = [one for one in found if one.mean is not None or one.failures]
    uneven = len({one.runs + len(one.failures) for one in ran}) > 1
    rows = [
        [
            Box(cell.dataset),
            Box(cell.algorithm),
            Box(published_text(cell)),
            *([Box(_runs(by_form.values()))] if uneven else []),
            *(_box(by_form.get(form)) for form in forms),
        ]
        for cell, by_form in cells.items()
    ]
    rules = dict.fromkeys((v.printed.dataset, v.rule) for v in found if v.rule)
    notes = [f"{name}: the rule that fits is “{rule}”." for name, rule in rules]
    notes += [f"{_listed(places)}: {reason}." for reason, places in reasons.items()]
    return Section(
        title=f"Table {table}, {_METRICS[metric]}",
        command=commands_of(report, table, found),
        columns=[
            *("set", "algorithm", "published"),
            *(["runs"] if uneven else []),
            *map(_heading, forms),
        ],
        rows=rows,
        notes=notes,
    )


def _tests(found: list[Match]) -> Section:
    """Return win/tie/loss of the paper's own algorithm, published and ours."""
    rivals = dict.fromkeys((one.table, one.algorithm, one.form) for one in found)
    rows = []
    for table, algorithm, form in rivals:
        tests = [
            m
            for m in found
            if (m.table, m.algorithm, m.form) == (table, algorithm, form)
        ]
        agree = sum(one.ours == one.printed for one in tests)
        boxes = [table, algorithm, _heading(form)]
        boxes += [
            "/".join(str(sum(one.printed == k for one in tests)) for k in (1, 0, -1))
        ]
        boxes += [
            "/".join(str(sum(one.ours == k for one in tests)) for k in (1, 0, -1))
        ]
        rows.append([Box(text) for text in (*boxes, f"{agree} of {len(tests)}")])
    return Section(
        title="Win/tie/loss of the paper's own algorithm (pairwise t-tests at 95 %)",
        command="",
        columns=["table", "against", "form", "published", "ours", "agree"],
        rows=rows,
        notes=[],
    )


def _markdown(report: Report) -> Iterator[str]:
    paper = protocol(report.wanted.source)
    yield f"# {paper.source}\n\n{paper.title}\n\n{effort_of(report)}\n"
    yield from (f"- {line}" for line in counts(report))
    for section in sections(report):
        yield f"\n## {section.title}\n"
        if section.command:
            yield f"```console\n{section.command}\n```\n"
        if section.rows:
            yield f"| {' | '.join(section.columns)} |"
            yield "|" + "---|" * len(section.columns)
        for row in section.rows:
            yield f"| {' | '.join(box.text for box in row)} |"
        yield ""
        yield from (f"- {note}" for note in section.notes)


def _html(report: Report) -> Iterator[str]:
    paper = protocol(report.wanted.source)
    yield f"<h1>{escape(paper.source)}</h1><p>{escape(paper.title)}</p>"
    yield f"<p>{escape(effort_of(report))}</p>{_items(counts(report))}"
    for section in sections(report):
        yield f"<h2>{escape(section.title)}</h2>"
        if section.command:
            yield f"<p><code>{escape(section.command)}</code></p>"
        if section.rows:
            heads = "".join(f"<th>{escape(name)}" for name in section.columns)
            yield f"<table><tr>{heads}"
            yield from (f"<tr>{''.join(map(_td, row))}" for row in section.rows)
            yield "</table>"
        yield _items(section.notes)


def _items(lines: list[str]) -> str:
    return (
        f"<ul>{''.join(f'<li>{escape(line)}' for line in lines)}</ul>" if lines else ""
    )


def _td(box: Box) -> str:
    colour = _COLOURS.get(box.verdict)
    style = f' style="background:{colour}"' if colour else ""
    return f"<td{style}>{escape(box.text)}"


def _box(one: Verdict | None) -> Box:
    return Box("") if one is None else Box(box_text(one), one.verdict)


def _runs(verdicts: Iterable[Verdict]) -> str:
    """Return the numbers of runs of the forms of a cell."""
    runs = {one.runs + len(one.failures) for one in verdicts}
    return " to ".join(str(count) for count in sorted(runs))


def _mean(mean: float, std: float | None) -> str:
    return f"{mean:.4f}" if std is None else f"{mean:.4f} ± {std:.4f}"


def _heading(form: str) -> str:
    return {"printed": "as published"}.get(form, form)


def _listed(places: list[str]) -> str:
    """Return the places as text, grouped by set."""
    sets: dict[str, list[str]] = {}
    for place in places:
        name, _, algorithm = place.partition(" ")
        sets.setdefault(name, []).append(algorithm)
    return "; ".join(
        f"{name} ({', '.join(algorithms)})" for name, algorithms in sets.items()
    )
