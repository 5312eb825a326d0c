"""Count the verdicts on the stored fits, for README.md and results/below.md.

``python reproduction/tools/counts.py`` reads ``results/lines/*.jsonl.gz`` and prints
the tables of README.md: verdicts by form and source, the values that are not compared
and why, and verdicts by table. ``… counts.py below`` prints the cells that are below or
have failed runs as published. If several files have a cell, the last one by file name
counts ("…-all" follows "…"). ``experiments.csv`` lists the cells that an experiment
explains.
"""

import csv
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from aucmax_reproduction import papers
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import FORMS, OURS, PRINTED, TUNED
from aucmax_reproduction.reproduce import Wanted, why_not_comparable
from aucmax_reproduction.tables import box_text, effort_text, published_text
from aucmax_reproduction.verdict import (
    ABOVE,
    BELOW,
    COMPARED,
    FAILED,
    INCOMPARABLE,
    LEVEL,
    SAME,
    Verdict,
    verdicts,
    without_easier,
)

FOLDER = Path(__file__).parents[1] / "results"
NAMES = {"khalid2019-dissertation": "dissertation", "natole2020-thesis": "thesis"}
HEADINGS = {PRINTED: "as published", OURS: "our defaults", TUNED: "ours, tuned"}
EASIER = "our task is easier than the paper's"

Found = dict[Printed, dict[str, Verdict]]  # by cell and form


def stored(folder: Path = FOLDER) -> Found:
    """Return the verdicts on all stored fits; later files replace earlier ones."""
    found: dict[tuple[Printed, str], Verdict] = {}
    for path in sorted((folder / "lines").glob("*.gz"), key=_run):
        head, *fits = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        limits = effort_text(Effort(*(head.get(name) for name in Effort._fields)))
        for one in verdicts(Wanted(head["source"], forms=tuple(FORMS)), fits):
            if one.mean is not None or one.failures:
                known = one.explained or one.chance
                reason = one.reason if known else f"unexplained; {limits}"
                found[one.printed, one.form] = one._replace(reason=reason)
    cells: Found = {}
    for one in explained(without_easier(list(found.values())), folder):
        if one.printed.metric != papers.SECONDS:
            cells.setdefault(one.printed, {})[one.form] = one
    return cells


def _run(path: Path) -> str:
    return path.name.removesuffix(".jsonl.gz")  # else "a-all" would precede "a"


def explained(found: Iterable[Verdict], folder: Path) -> list[Verdict]:
    """Return the verdicts with the explanations of ``experiments.csv``."""
    with open(folder / "experiments.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    reasons = {
        (row["source"], row["table"], row["dataset"], row["algorithm"], form): row
        for row in rows
        for form in row["forms"].split()
    }
    return [
        one._replace(explained=True, reason=f"{row['found']} (`{row['command']}`)")
        if (row := reasons.get((*one.printed[:4], one.form))) and one.verdict == BELOW
        else one
        for one in found
    ]


def short(source: str) -> str:
    """Return a short name of a source."""
    return NAMES.get(source, source.split("-")[0])


def headline(found: Found) -> list[list[str]]:
    """Return the verdicts by form and source."""
    columns = "form, source, compared, same, above, below, explained, within chance, "
    columns += "unexplained, failed runs, Welch: equal"
    rows = [columns.split(", ")]
    for form, heading in HEADINGS.items():
        every = [v[form] for v in found.values() if form in v]
        every = [v for v in every if v.verdict in COMPARED]
        for source in [*papers.sources(), ""]:
            mine = [v for v in every if source in ("", v.printed.source)]
            if mine:
                name = short(source) if source else "all"
                rows.append([heading, name, *numbers(mine)])
    return rows


def numbers(found: list[Verdict]) -> list[str]:
    """Return the numbers of a row of the headline table."""
    count = Counter(one.verdict for one in found)
    reasons = Counter(reason(one) for one in found if one.verdict == BELOW)
    tested = [one.welch for one in found if one.welch is not None]
    equal = sum(p_value >= LEVEL for p_value in tested)
    return [
        str(len(found)),
        f"{count[SAME]} ({100 * count[SAME] / len(found):.0f} %)",
        *(str(count[name]) for name in (ABOVE, BELOW)),
        *(str(reasons[name]) for name in ("explained", "within chance", "unexplained")),
        str(count[FAILED]),
        f"{equal} of {len(tested)}",
    ]


def reason(one: Verdict) -> str:
    """Return what is known of a cell that is below."""
    if one.explained:
        return "explained"
    return "within chance" if one.chance else "unexplained"


def coverage(found: Found) -> list[list[str]]:
    """Return the number of published values by what became of them."""
    count: Counter[str] = Counter()
    for cell in papers.every():
        mine = found.get(cell, {}).values()
        if cell.metric == papers.SECONDS:
            why = "seconds of another machine"
        elif cell.copied:
            why = "copied by the authors from another paper"
        elif any(one.verdict in COMPARED for one in mine):
            why = "**compared**"
        elif any(one.verdict == INCOMPARABLE and EASIER in one.reason for one in mine):
            why = EASIER
        else:
            why = why_not_comparable(cell) or "not run"
        count[why] += 1
    rows = [[why, str(number)] for why, number in count.most_common()]
    return [["published values", str(len(papers.every()))], *rows]


def by_table(found: Found) -> list[list[str]]:
    """Return same / above / below / failed by table, and the runs as published."""
    rows = [["table", "cells", *HEADINGS.values(), "runs as published"]]
    groups: dict[tuple[str, str], list[dict[str, Verdict]]] = {}
    for cell, forms in found.items():
        if any(one.verdict in COMPARED for one in forms.values()):
            groups.setdefault((short(cell.source), cell.table), []).append(forms)
    for (source, table), cells in sorted(groups.items()):
        boxes = []
        for form in HEADINGS:
            mine = Counter(forms[form].verdict for forms in cells if form in forms)
            counts = [mine[name] for name in COMPARED]
            boxes += [" / ".join(map(str, counts)) if any(counts) else "–"]
        printed = [forms[PRINTED] for forms in cells if PRINTED in forms]
        runs = sorted({one.runs + len(one.failures) for one in printed})
        ends = dict.fromkeys([runs[0], runs[-1]] if runs else [])
        span = " to ".join(map(str, ends))
        rows.append([f"{source} {table}", str(len(cells)), *boxes, span])
    return rows


def below(found: Found) -> list[list[str]]:
    """Return the cells that are below, or failed, as published."""
    rows = [["table", "set", "algorithm", "published", "as published", "reason"]]
    for cell, forms in sorted(found.items()):
        one = forms.get(PRINTED)
        if one is None or one.verdict not in (BELOW, FAILED):
            continue
        kind = one.reason if one.verdict == BELOW else one.failures[0].split(". ")[0]
        if one.explained or one.chance:
            kind = f"{reason(one)}: {kind}"
        what = "" if cell.metric == papers.AUC else ", accuracy"
        place = f"{short(cell.source)} {cell.table}{what}", cell.dataset, cell.algorithm
        rows.append([*place, published_text(cell), box_text(one), kind])
    return rows


def markdown(rows: list[list[str]]) -> str:
    """Return rows as a Markdown table; the first one is the heading."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def main(what: str = "") -> None:
    """Print the tables."""
    found = stored()
    if what == "below":
        print("# Cells below the published value as published\n")
        print("Written by `python reproduction/tools/counts.py below`.\n")
        print(markdown(below(found)))
        return
    print("\n\n".join(markdown(rows(found)) for rows in (headline, coverage, by_table)))


if __name__ == "__main__":
    main(*sys.argv[1:])
