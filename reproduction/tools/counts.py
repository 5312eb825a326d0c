"""Count the verdicts in reproduction/results/*.md, for the table of README.md.

``python reproduction/tools/counts.py`` counts the sign after each of our means in the
files written by ``python -m aucmax_reproduction``. If several files have a cell, the
last one by file name counts ("…-all.md" follows "….md"), so that a run without a row
limit replaces one with it. A cell that is below is explained if a note of its table
says that no linear model gets there, or if ``experiments.csv`` has a finding and its
command. If a set has a test file, our test rows are the paper's, and their standard
error, which older files have in their notes, explains nothing.
"""

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "results"
FORMS = {"ours": "ours", "tuned": "tuned", "as printed": "printed"}
SIGNS = {"=": "met", "+": "above", "≈": "within", "below": "below"}
WITH_TEST_FILE = {"ijcnn1", "mnist", "usps", "sector", "sector_v2"}
LIMIT = "no linear model gets there"
ERROR = "within two standard errors"
CHAPTERS = {"khalid2019-dissertation": "dissertation", "natole2020-thesis": "thesis"}


class Place(NamedTuple):
    """Position of a published cell."""

    source: str
    table: str
    metric: str
    dataset: str
    algorithm: str


Found = dict[Place, dict[str, str]]  # by cell and form: met, above, within, …


def cells(path: Path) -> Iterator[tuple[Place, dict[str, str]]]:
    """Yield the cells of a file with the verdict of each form."""
    text = path.read_text(encoding="utf-8")
    source = text.split("\n", 1)[0].removeprefix("# ")
    older = "within error" not in text  # than that verdict
    for section in text.split("\n## ")[1:]:
        title = re.match(r"Table (\S+), (.*)", section)
        if title is None or "seconds" in title[2]:
            continue
        rows = [line.strip("| ").split(" | ") for line in section.split("\n| ")[1:]]
        rows = [[word.split("\n")[0].strip(" |") for word in row] for row in rows]
        notes = re.findall(r"^- (.*?\)): (.*)$", section, re.MULTILINE)
        for row in rows[1:]:
            named = dict(zip(rows[0], row, strict=False))
            place = Place(source, *title.groups(), named["set"], named["algorithm"])
            yield (
                place,
                {
                    form: verdict(place, named[heading], notes, older)
                    for heading, form in FORMS.items()
                    if named.get(heading)
                },
            )


def verdict(place: Place, box: str, notes: list[tuple[str, str]], older: bool) -> str:
    """Return the verdict of a cell from its sign and the notes."""
    what = SIGNS.get(box.rsplit(" ", 1)[-1], "")
    pattern = rf"(?:^|; ){re.escape(place.dataset)} \(([^)]*)\)"
    said = [
        reason
        for places, reason in notes
        for names in re.findall(pattern, places)
        if place.algorithm in names.split(", ")
    ]
    if what == "below" and any(LIMIT in reason for reason in said):
        return "explained"
    by_rows = older and any(ERROR in reason for reason in said)
    if what == "below" and by_rows and place.dataset not in WITH_TEST_FILE:
        return "within"
    return what


def every() -> Found:
    """Return the cells of all files; later files replace earlier ones."""
    found: Found = {}
    for path in sorted(FOLDER.glob("*.md"), key=lambda path: path.stem):
        for place, forms in cells(path):
            found.setdefault(place, {}).update({k: v for k, v in forms.items() if v})
    with open(FOLDER / "experiments.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for place, forms in found.items():
                if (*place[:2], *place[3:]) == tuple(list(row.values())[:4]):
                    for form, what in forms.items():
                        forms[form] = "explained" if what == "below" else what
    return found


def counted(mine: list[str]) -> str:
    """Return the numbers of verdicts as text."""
    if not mine:
        return "–"
    met = sum(what in ("met", "above") for what in mine)
    rest = {name: mine.count(name) for name in ("within", "explained", "below")}
    return " / ".join(map(str, (met, *rest.values())))


def best(forms: dict[str, str]) -> str:
    """Return the better of our two forms."""
    order = ("above", "met", "within", "explained", "below")
    ours = [forms[form] for form in ("ours", "tuned") if form in forms]
    return min(ours, key=order.index) if ours else ""


def main() -> None:
    """Print the table."""
    found = every()
    print("| table | cells | our defaults | default or tuned | as printed |")
    print("|---|---|---|---|---|")
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for place, forms in found.items():
        if forms:
            source = CHAPTERS.get(place.source, place.source.split("-")[0])
            groups.setdefault((source, place.table), []).append(forms)
    total: list[dict[str, str]] = []
    for (source, table), mine in [*sorted(groups.items()), (("all", ""), total)]:
        columns = [
            [forms["ours"] for forms in mine if "ours" in forms],
            [best(forms) for forms in mine if best(forms)],
            [forms["printed"] for forms in mine if "printed" in forms],
        ]
        boxes = f"{source} {table}".strip(), str(len(mine)), *map(counted, columns)
        print(f"| {' | '.join(boxes)} |")
        total += mine if source != "all" else []
    if "--below" in sys.argv:
        for place, forms in found.items():
            if best(forms) == "below":
                print(*place)


if __name__ == "__main__":
    main()
