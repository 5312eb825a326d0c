"""Run the tables of a paper, with ours beside what is printed."""

import json
from pathlib import Path

from rich.table import Table
from rich.text import Text

from aucmax.cli.terminal import Screen, fits_bar, plural, table
from aucmax.storage.atomic import write_atomically
from aucmax_reproduction import tables
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.lines import Line
from aucmax_reproduction.papers import SECONDS
from aucmax_reproduction.protocol import FORMS
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.reproduce import (
    Wanted,
    jobs_of,
    obstacle,
    recorded,
    reproduce,
    reservation,
    trainings,
)
from aucmax_reproduction.tables import Section
from aucmax_reproduction.verdict import BELOW, FAILED, WITHIN, Report

_STYLES = {BELOW: "red", WITHIN: "yellow", FAILED: "yellow"}


def run(
    wanted: Wanted,
    effort: Effort,
    folder: Path,
    workers: int,
    *,
    fits: bool,
    figures: bool,
    as_json: bool,
) -> int:
    """Do the fits, or take those there are; write and show the tables."""
    screen = Screen(quiet=as_json)
    _check(wanted)
    results = folder / f"{wanted.source}.jsonl"
    if fits:
        lines = _do(wanted, effort, results, workers, screen)
    else:
        wanted, effort, lines = recorded(wanted, results)
    report = Report.of(wanted, effort, lines)
    written = _write(report, folder) + (_draw(report, folder) if figures else [])
    if as_json:
        print(json.dumps(report.summary(), indent=2))
    else:
        _show(report, screen)
        screen.print(f"Written: {', '.join(map(str, written))}", wrap=False)
    return int(any("error" in line for line in lines))


def _do(
    wanted: Wanted, effort: Effort, results: Path, workers: int, screen: Screen
) -> list[Line]:
    try:
        with fits_bar() as watch:
            return reproduce(wanted, results, effort, workers=workers, watch=watch)
    except KeyboardInterrupt:
        screen.warn(f"What is done is in {results}: the same command goes on.")
        raise


def foretell(wanted: Wanted, effort: Effort, as_json: bool) -> None:
    """Say how many fits there would be, and of how many models."""
    _check(wanted)
    fits: dict[tuple[str, str], list[int]] = {}
    for job in jobs_of(wanted):
        fits.setdefault((job.table, job.form), []).append(trainings(job, effort))
    if as_json:
        rows = [
            {"table": name, "form": form, "fits": len(mine), "models": sum(mine)}
            for (name, form), mine in fits.items()
        ]
        print(json.dumps(rows, indent=2))
        return
    screen = Screen()
    grid = table("table", "form", "fits", "models trained")
    for (name, form), mine in fits.items():
        grid.add_row(name, form, f"{len(mine):,}", f"{sum(mine):,}")
    screen.show(grid)
    skipped: dict[str, list[str]] = {}
    for cell in wanted.cells:
        why = obstacle(cell) or reservation(cell)
        if why and not cell.copied and cell.metric != SECONDS:
            places = skipped.setdefault(why, [])
            places += [cell.dataset] if cell.dataset not in places else []
    for why, places in skipped.items():
        screen.print(f"Left out: {', '.join(places)}: {why}.", style="dim")


def names(text: str) -> tuple[str, ...]:
    """Return words that are separated by commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _check(wanted: Wanted) -> None:
    """Refuse what there is not, before hours of work."""
    _ = wanted.cells  # says what the paper does not print
    if unknown := [form for form in wanted.forms if form not in FORMS]:
        raise ValueError(f"There is no form {unknown[0]!r}: {', '.join(FORMS)}.")
    if not wanted.forms:
        raise ValueError(f"--forms needs one of {', '.join(FORMS)}.")


def _write(report: Report, folder: Path) -> list[Path]:
    """Write the tables in all formats; return where they are."""
    texts = {
        "csv": tables.as_csv(report),
        "md": tables.as_markdown(report),
        "html": tables.as_html(report),
    }
    paths = [folder / f"{report.wanted.source}.{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_atomically(path, text.encode())
    return paths


def _draw(report: Report, folder: Path) -> list[Path]:
    """Draw the figures of the paper, for the sets that are wanted and here."""
    from aucmax.report.roc import save_figure
    from aucmax_reproduction.curves import curves, drawable
    from aucmax_reproduction.figures import learning_figure, parameter_figure

    wanted, paths = report.wanted, []
    (folder / "figures").mkdir(exist_ok=True)
    for picture in protocol(wanted.source).pictures:
        if wanted.tables and picture.table not in wanted.tables:
            continue
        for name in drawable(wanted.source, picture, wanted.datasets):
            found = curves(wanted.source, picture, name, report.effort)
            title = f"{picture.title}: {name}"
            if picture.parameter:
                figure = parameter_figure(found, title, picture.parameter)
            else:
                figure = learning_figure(found, title)
            path = folder / "figures" / f"{wanted.source}-{picture.number}-{name}.png"
            save_figure(figure, path)
            paths.append(path)
    return paths


def _show(report: Report, screen: Screen) -> None:
    screen.print(protocol(report.wanted.source).title, style="bold")
    screen.print(tables.effort_of(report))
    for section in tables.sections(report):
        screen.print(f"\n{section.title}", style="bold")
        if section.rows:
            screen.show(_grid(section))
        for note in section.notes:
            screen.print(note, style="dim")
    screen.print()
    for line in tables.counts(report):
        screen.print(line)
    failed = [one for one in report.verdicts if one.verdict == FAILED]
    if failed:
        cell = failed[0].printed
        screen.warn(
            f"{plural(len(failed), 'cell')} failed, as {cell.dataset} "
            f"{cell.algorithm}: {failed[0].reason}"
        )


def _grid(section: Section) -> Table:
    first, second, *others = section.columns
    grid = table(first, second, *others)
    grid.columns[1].justify = "left"
    for row in section.rows:
        grid.add_row(*(Text(b.text, _STYLES.get(b.verdict, "")) for b in row))
    return grid
