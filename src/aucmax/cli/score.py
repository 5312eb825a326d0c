"""``aucmax score``: the data with a column of scores."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

from aucmax.cli.screen import Screen, reading, seconds
from aucmax.scoring import BadLines, Model, write_scores


def run(
    model: Path, data: Sequence[str], output: Path | None, on_bad_line: str
) -> None:
    """Score the data; say how it went if scores go to a file."""
    start = perf_counter()
    if output == Path("-"):
        output = None
    ranker, bad = Model.load(model), BadLines(on_bad_line)
    # A bar between lines that go to the same terminal is of no use.
    shown = output is not None or not sys.stdout.isatty()
    watch = partial(reading, label="Scoring", shown=shown)
    rows = write_scores(ranker, data, output, bad, watch)
    screen = Screen()
    if output is not None:
        time = perf_counter() - start
        screen.print(f"{rows:,} rows scored in {seconds(time)}: {output}", wrap=False)
    if remark := bad.remark():
        screen.warn(remark)
