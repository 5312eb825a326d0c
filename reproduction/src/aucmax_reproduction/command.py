"""Run the tables of a paper, show them and write them to files."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from aucmax.cli.terminal import Screen, fits_bar, table
from aucmax.storage.atomic import write_atomically
from aucmax_reproduction import tables, user_data
from aucmax_reproduction.fitting import Effort
from aucmax_reproduction.lines import Line
from aucmax_reproduction.papers import SECONDS
from aucmax_reproduction.protocol import FORMS, IMBALANCE, TIMES, Picture
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.reproduce import (
    Wanted,
    jobs_of,
    recorded,
    reproduce,
    trainings,
    why_not_comparable,
    why_not_run,
)
from aucmax_reproduction.tables import Section
from aucmax_reproduction.verdict import BELOW, FAILED, Report

_STYLES = {BELOW: "red", FAILED: "yellow"}


def run(
    wanted: Wanted,
    effort: Effort,
    folder: Path,
    workers: int,
    pictures: Sequence[Picture],
    *,
    fits: bool,
    as_json: bool,
) -> int:
    """Run the fits, or read existing ones; write and show the tables."""
    screen = Screen(quiet=as_json)
    _check(wanted)
    results = folder / f"{wanted.source}.jsonl"
    if fits:
        lines = _do(wanted, effort, results, workers, screen)
    else:
        wanted, effort, lines = recorded(wanted, results)
    report = Report.of(wanted, effort, lines)
    written = _write(report, folder) + _draw(report, lines, pictures, folder)
    if as_json:
        print(json.dumps(report.summary(), indent=2))
    else:
        _show(report, screen)
        screen.print(f"Written: {', '.join(map(str, written))}", wrap=False)
    return int(fits and any("error" in line for line in lines))


def _do(
    wanted: Wanted, effort: Effort, results: Path, workers: int, screen: Screen
) -> list[Line]:
    try:
        with fits_bar() as watch:
            return reproduce(wanted, results, effort, workers=workers, watch=watch)
    except KeyboardInterrupt:
        screen.warn(f"Finished fits are in {results}: run the same command to resume.")
        raise


def show_plan(wanted: Wanted, effort: Effort, as_json: bool) -> None:
    """Show the number of fits and of trained models."""
    _check(wanted)
    fits: dict[tuple[str, str], list[int]] = {}
    for job in jobs_of(wanted):
        fits.setdefault((job.table, job.form), []).append(trainings(job, effort))
    if as_json:
        rows = [
            {"table": name, "form": form, "fits": len(models), "models": sum(models)}
            for (name, form), models in fits.items()
        ]
        print(json.dumps(rows, indent=2))
        return
    screen = Screen()
    grid = table("table", "form", "fits", "models trained")
    for (name, form), models in fits.items():
        grid.add_row(name, form, f"{len(models):,}", f"{sum(models):,}")
    screen.show(grid)
    skipped: dict[str, list[str]] = {}
    for cell in wanted.cells:
        why = why_not_run(cell) or why_not_comparable(cell)
        if why and not cell.copied and cell.metric != SECONDS:
            places = skipped.setdefault(why, [])
            places += [cell.dataset] if cell.dataset not in places else []
    for why, places in skipped.items():
        screen.print(f"Skipped: {', '.join(places)}: {why}.", style="dim")


def names(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _check(wanted: Wanted) -> None:
    """Use the user's files; raise an error for unknown names, before hours of work."""
    user_data.use(wanted.source, wanted.data)
    _ = wanted.cells  # raises an error for unknown tables, sets and algorithms
    if unknown := [form for form in wanted.forms if form not in FORMS]:
        raise ValueError(f"Unknown form {unknown[0]!r}. Use one of {', '.join(FORMS)}.")
    if not wanted.forms:
        raise ValueError(f"--forms is empty. Use one of {', '.join(FORMS)}.")


def _write(report: Report, folder: Path) -> list[Path]:
    """Write the tables in all formats; return the paths."""
    texts = {
        "csv": tables.as_csv(report),
        "md": tables.as_markdown(report),
        "html": tables.as_html(report),
    }
    paths = [folder / f"{report.wanted.source}.{ending}" for ending in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_atomically(path, text.encode())
    return paths


def pictures_of(source: str, numbers: Sequence[str]) -> list[Picture]:
    """Return the figures of a paper with these numbers; none given: all."""
    known = {picture.number: picture for picture in protocol(source).pictures}
    if unknown := [number for number in numbers if number not in known]:
        raise ValueError(
            f"{source} has no figure {unknown[0]!r}. Use one of {', '.join(known)}."
        )
    return [known[number] for number in numbers or known]


def _draw(
    report: Report, lines: list[Line], pictures: Sequence[Picture], folder: Path
) -> list[Path]:
    """Draw figures of the paper for the available sets."""
    if not pictures:
        return []
    from aucmax_reproduction.figures import save_figure

    wanted, paths = report.wanted, []
    (folder / "figures").mkdir(exist_ok=True)
    for picture in pictures:
        if wanted.tables and picture.table not in wanted.tables:
            continue
        for name, figure in _figures(report, lines, picture):
            ending = f"-{name}" if name else ""
            path = folder / "figures" / f"{wanted.source}-{picture.number}{ending}.png"
            save_figure(figure, path)
            paths.append(path)
    return paths


def _figures(
    report: Report, lines: list[Line], picture: Picture
) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a picture with the set that each is for."""
    from aucmax_reproduction.curves import curves, drawable, mean_seconds
    from aucmax_reproduction.figures import (
        learning_figure,
        parameter_figure,
        time_figure,
    )

    wanted = report.wanted
    if picture.kind == TIMES:
        if seconds := mean_seconds(picture, lines):
            yield "", time_figure(seconds, picture.title)
        return
    for name in drawable(wanted.source, picture, wanted.datasets):
        found = curves(wanted.source, picture, name, report.effort)
        title = f"{picture.title}: {name}"
        if picture.kind == IMBALANCE:
            ratio = "Negatives per positive in training"
            yield name, parameter_figure(found, title, ratio, "Accuracy")
        elif picture.parameter:
            yield name, parameter_figure(found, title, picture.parameter)
        else:
            yield name, learning_figure(found, title)


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
            f"Cells with failed runs: {len(failed)}; first {cell.dataset} "
            f"{cell.algorithm}: {failed[0].failures[0]}"
        )


def _grid(section: Section) -> Table:
    first, second, *others = section.columns
    grid = table(first, second, *others)
    grid.columns[1].justify = "left"
    for row in section.rows:
        grid.add_row(*(Text(b.text, _STYLES.get(b.verdict, "")) for b in row))
    return grid
