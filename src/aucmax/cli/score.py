"""``aucmax score``: append a column of scores to data."""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.terminal import ReadingBar, Screen, duration, plural
from aucmax.io.malformed_lines import BadLines
from aucmax.storage.atomic import refuse_overwriting
from aucmax.workflows.score import Model, Output, write_scores


def run(
    model: Path,
    data: Sequence[str],
    output: Path | None,
    changes: dict[str, Any],
    policy: str,
    what: Output,
    as_json: bool,
) -> None:
    """Score the data; print a summary if the scores go to a file."""
    start = perf_counter()
    if output == Path("-"):
        output = None
    if output is None and as_json:
        raise ValueError("--json prints a summary: write the scores with -o FILE.")
    if output is not None:
        refuse_overwriting(output, [model])
    ranker = Model.load_for(model, data, "score")
    bad = BadLines(policy)
    # No progress bar between scores that go to the same terminal.
    shown = output is not None or not (sys.stdout and sys.stdout.isatty())
    watch = partial(ReadingBar, label="Scoring", shown=shown)
    rows, written = write_scores(ranker, data, output, bad, watch, changes, what)
    screen, seconds = Screen(quiet=as_json), perf_counter() - start
    if as_json:
        found = {"output": str(output), "rows": rows, "written": written}
        found |= {"bad_lines": bad.count}
        print(json.dumps(found | {"seconds": round(seconds, 3)}, indent=2))
    elif output is not None:
        some = "" if written == rows else f", {plural(written, 'row')} written"
        screen.print(
            f"{plural(rows, 'row')} scored in {duration(seconds)}{some}: {output}",
            wrap=False,
        )
    if remark := bad.remark("given no score" if what.top is None else "left out"):
        screen.warn(remark)
