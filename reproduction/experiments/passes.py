"""Compare passes of SPAM and regSOLAM over the rows, which the papers do not state.

``python reproduction/experiments/passes.py`` compares the stored fits of natole2018 and
the thesis with 15 passes (``results/lines``) and with one (``results/experiments``).
``--fit FOLDER --passes N --source SOURCE`` runs the fits with N passes; ``--runs``,
``--table`` and ``--datasets`` are those of ``python -m aucmax_reproduction``.
"""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

from aucmax_reproduction import papers
from aucmax_reproduction.command import names
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import PRINTED, Protocol, Recipe
from aucmax_reproduction.protocols import PROTOCOLS
from aucmax_reproduction.protocols.natole2018 import PASSES
from aucmax_reproduction.reproduce import Wanted, reproduce
from aucmax_reproduction.tables import box_text, published_text
from aucmax_reproduction.verdict import SAME, Verdict, verdicts

RESULTS = Path(__file__).parents[1] / "results"
SOURCES = ("natole2018-spam", "natole2020-thesis")


def with_passes(paper: Protocol, passes: int) -> Protocol:
    """Return a protocol with another number of passes of its online learners."""

    def changed(recipe: Recipe) -> Recipe:
        if recipe.passes == PASSES:
            return recipe._replace(passes=passes)
        if recipe.printed.get("max_iter") == PASSES:
            return recipe._replace(printed={**recipe.printed, "max_iter": passes})
        return recipe

    plans = {
        table: plan._replace(
            recipes={name: changed(recipe) for name, recipe in plan.recipes.items()}
        )
        for table, plan in paper.plans.items()
    }
    return paper._replace(plans=plans)


def stored(path: Path) -> dict[Printed, Verdict]:
    """Return the verdicts on the stored fits as published, without SPDAM."""
    head, *fits = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    found = verdicts(Wanted(head["source"], forms=(PRINTED,)), fits)
    return {
        one.printed: one
        for one in found
        if one.mean is not None
        and one.printed.metric == "auc"
        and one.printed.algorithm != "SPDAM"
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fit", type=Path, default=None, metavar="FOLDER")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--source", choices=SOURCES, default="natole2020-thesis")
    parser.add_argument("--table", default="")
    parser.add_argument("--datasets", default="")
    parser.add_argument("--runs", type=int, default=None)
    given = parser.parse_args()
    if given.fit:
        PROTOCOLS[given.source] = with_passes(PROTOCOLS[given.source], given.passes)
        tables, sets = names(given.table), names(given.datasets)
        own = (c for c in papers.cells(given.source, tables, sets) if not c.copied)
        learners = tuple({cell.algorithm for cell in own} - {"SPDAM"})
        wanted = Wanted(given.source, tables, sets, learners, (PRINTED,), given.runs)
        reproduce(wanted, given.fit / f"{given.source}.jsonl", Effort(5, 3000))
        return
    print("| table | set | algorithm | published | one pass | 15 passes |")
    print("|---|---|---|---|---|---|")
    same: dict[tuple[str, str], Counter[str]] = {}
    for source in SOURCES:
        one = stored(RESULTS / "experiments" / f"{source}-one-pass.jsonl.gz")
        fifteen = stored(RESULTS / "lines" / f"{source}.jsonl.gz")
        for cell in one.keys() & fifteen.keys():
            count = same.setdefault((source, cell.table), Counter())
            count["cells"] += 1
            count["one"] += one[cell].verdict == SAME
            count["15"] += fifteen[cell].verdict == SAME
        for cell in sorted(one.keys() & fifteen.keys()):
            place = f"{source} {cell.table}", cell.dataset, cell.algorithm
            boxes = box_text(one[cell]), box_text(fifteen[cell])
            print(f"| {' | '.join((*place, published_text(cell), *boxes))} |")
    print("\n| table | cells | same with one pass | same with 15 passes |")
    print("|---|---|---|---|")
    for (source, table), count in sorted(same.items()):
        print(
            f"| {source} {table} | {count['cells']} | {count['one']} | {count['15']} |"
        )


if __name__ == "__main__":
    main()
