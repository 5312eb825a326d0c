"""``aucmax score``: the data with a column of scores."""

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from aucmax.cli.datasets import local_files
from aucmax.cli.screen import Screen, reading, seconds, some
from aucmax.io.compression import expand
from aucmax.io.malformed_lines import BadLines
from aucmax.storage.atomic import refuse_overwriting, refuse_twice
from aucmax.workflows.score import Model, write_scores


def run(
    model: Path,
    data: Sequence[str],
    output: Path | None,
    options: dict[str, Any],
    on_bad_line: str,
    quarantine: Path | None,
    as_json: bool,
) -> None:
    """Score the data; say how it went if scores go to a file."""
    start = perf_counter()
    if output == Path("-"):
        output = None
    if output is None and as_json:
        raise ValueError("--json tells how it went; the scores want a file: -o FILE.")
    if output is not None:
        refuse_overwriting(output, [model])
    refuse_twice(output, quarantine)
    if quarantine is not None:
        refuse_overwriting(quarantine, [*expand(data), model])
    local_files(data)  # a bar, if they have to be fetched
    ranker = Model.load_for(model, data, "score")
    bad = BadLines(on_bad_line, quarantine)
    # A bar between lines that go to the same terminal is of no use.
    shown = output is not None or not (sys.stdout and sys.stdout.isatty())
    watch = partial(reading, label="Scoring", shown=shown)
    with closing(bad):
        rows = write_scores(ranker, data, output, bad, watch, options)
    screen, time = Screen(quiet=as_json), perf_counter() - start
    if as_json:
        found = {"output": str(output), "rows": rows, "bad_lines": bad.count}
        print(json.dumps(found | {"seconds": round(time, 3)}, indent=2))
    elif output is not None:
        screen.print(
            f"{some(rows, 'row')} scored in {seconds(time)}: {output}", wrap=False
        )
    if remark := bad.remark("given no score" if bad.in_place else "left out"):
        screen.warn(remark)
