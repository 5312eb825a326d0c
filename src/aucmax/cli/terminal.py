"""Terminal output: text, tables and progress bars."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, perf_counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from aucmax.cli.printable import printable
from aucmax.io import text as io_text
from aucmax.metrics._ranking import with_interval
from aucmax.tables.column_kinds import LEFT_OUT, NUMBER, column_kinds

# Names of columns are not markup and not emoji codes.
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
_MAX_NUMERIC, _MAX_COLUMNS = 12, 40  # rows of a table of columns
_MAX_IMPORTANCES = 8
_LOG_SECONDS = 2.0  # between lines of progress where there is no terminal
_MAX_LOG_SECONDS = 60.0


class Console(RichConsole):
    """A console that escapes control characters; rich passes them on."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield segments of printable text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


class ProgressBar(Progress):
    """A progress bar on standard error, shown only in a terminal.

    The bar pulses if ``total`` is None. ``table`` is shown below it.
    """

    table: RenderableType | None = None

    def __init__(
        self, label: str, total: float | None = None, shown: bool = True
    ) -> None:
        console = Console(stderr=True, **_PLAIN)
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(None, table_column=Column(ratio=1)),
            _Details(Column(no_wrap=True)),
            console=console,
            transient=True,
            expand=True,
            disable=not (shown and console.is_terminal),
        )
        self._task = self.add_task(label, total=total, details="")

    def show(self, completed: float, **fields: Any) -> None:
        """Update the bar; fields are ``description``, ``total`` and ``details``."""
        self.update(self._task, completed=completed, **fields)

    def pulse(self, label: str) -> None:
        """Show that work of unknown duration has begun."""
        self.tasks[0].total = None
        self.update(self._task, description=label, refresh=True)

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the table below it."""
        yield from super().get_renderables()
        if self.table is not None:
            yield self.table


class ReadingBar(ProgressBar):
    """Shows the progress of reading files, in bytes and rows.

    The time left is that of all ``passes``, or of the current pass if their number is
    not known. With ``logs``, lines are printed to standard error where there is no
    terminal: after 2 seconds, then in growing intervals of up to a minute.
    """

    def __init__(
        self,
        paths: Sequence[str],
        passes: int | None = None,
        label: str = "Reading",
        shown: bool = True,
        logs: bool = False,
    ) -> None:
        self._logs, self._screen = logs, Screen()
        self._wait, self._next_line = _LOG_SECONDS, monotonic() + _LOG_SECONDS
        self._size, self._label = io_text.Text(paths).size, label  # None for a pipe
        total = None if self._size is None else self._size * (passes or 1)
        # The first run on a machine compiles before it reads.
        super().__init__("Starting, or compiling", total, shown)

    def __call__(
        self,
        done: int,
        rows: int,
        passes: int = 0,
        auc: float | None = None,
        note: str = "",
    ) -> None:
        """Show bytes read in this pass, rows of all passes, and completed passes."""
        task, before = self.tasks[0], (self._size or 0) * passes
        if task.total is not None and before + done > task.total:
            before = 0  # the number of passes is not known
        details = f"{rows:,} rows, {rows / max(task.elapsed or 0, 1e-9):,.0f}/s"
        details += "" if auc is None else f", AUC {auc:.4f}"
        details += f", {note}" if note else ""
        self.show(before + done, description=self._label, details=details)
        if (
            (rows or note)
            and self._logs
            and self.disable
            and monotonic() >= self._next_line
        ):
            self._next_line = monotonic() + self._wait
            self._wait = min(2.0 * self._wait, _MAX_LOG_SECONDS)
            self._screen.warn(f"{self._label}: {details}")


class _Details(ProgressColumn):
    """Percentage done, details, elapsed time and time left."""

    def render(self, task: Task) -> Text:
        words = [str(task.fields["details"])]
        if task.total:
            words.insert(0, f"{task.percentage:.0f} %")
            if task.time_remaining is not None:
                words.append(f"{duration(task.time_remaining)} left")
        elif task.elapsed is not None:
            words.append(duration(task.elapsed))
        return Text(", ".join(filter(None, words)))


class Screen:
    """Text and tables on standard output, notes on standard error.

    ``quiet`` keeps standard output free for JSON.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._out = Console(quiet=quiet, **_PLAIN)
        self._err = Console(stderr=True, **_PLAIN)

    def print(self, text: str = "", style: str = "", wrap: bool = True) -> None:
        """Print text; ``wrap=False`` for paths and other text to be copied."""
        self._out.print(text, style=style, soft_wrap=not wrap)

    def show(self, table: RenderableType) -> None:
        """Print a table."""
        self._out.print(table)

    def warn(self, text: str) -> None:
        """Print a note to standard error."""
        # Without a terminal a note is one line, for logs.
        self._err.print(text, style="yellow", soft_wrap=not self._err.is_terminal)

    @contextmanager
    def step(self, label: str, total: int | None = None) -> Iterator[ProgressBar]:
        """Show a step with a progress bar, or print its duration when it ends."""
        start = perf_counter()
        with ProgressBar(label, total) as bar:
            yield bar
        if not self._err.is_terminal:
            self.print(f"{label}: {perf_counter() - start:.1f} s")


@contextmanager
def fits_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show a name and how many fits are done of how many; log lines elsewhere."""
    screen, last = Screen(), monotonic()

    def watch(name: str, done: int, total: int) -> None:
        nonlocal last
        details = f"{done:,} of {plural(total, 'fit')}"
        bar.show(done, description=name, total=total, details=details)
        if bar.disable and monotonic() - last >= _LOG_SECONDS:
            screen.warn(f"{name}: {details}")
            last = monotonic()

    with ProgressBar("") as bar:
        yield watch


def table(first: str, *others: str) -> Table:
    """Return an empty table: a column of names, then columns of numbers."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column(first, overflow="fold")
    for name in others:  # fold: a truncated number would be a wrong one
        grid.add_column(name, justify="right", overflow="fold")
    return grid


def columns_table(roles: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return the kinds of the columns, without plain numeric ones if they are many.

    None if there is nothing to show.
    """
    shown = [
        r for r in roles if r["role"] != NUMBER or r["missing"] or r.get("notation")
    ]
    if len(roles) - len(shown) <= _MAX_NUMERIC:
        shown = list(roles)
    if not shown:
        return None
    grid = table("column", "kind", "distinct", "missing", "features")
    grid.columns[1].justify = grid.columns[4].justify = "left"
    shown = shown[:_MAX_COLUMNS]
    for role, (name, kind, features) in zip(shown, column_kinds(shown), strict=True):
        share = 100.0 * role["missing"] / max(role["rows"], 1)
        missing = f"{share:.3g} %" if role["missing"] else ""
        cells = name, kind, f"{role['distinct']:,}", missing, features
        grid.add_row(*cells, style="dim" if role["role"] in LEFT_OUT else "")
    if rest := len(roles) - len(shown):
        grid.add_row(f"… {rest:,} more")
    return grid


def leaderboard(members: Sequence[Mapping[str, Any]]) -> Table:
    """Return the members of a blend or of a race, with AUC and weight."""
    if members and "running" in members[0]:
        return _race(members)
    grid = table("member", "AUC", "95 % CI", "weight", "rows", "seconds")
    for one in members:
        area, low, high = with_interval(one["auc"], one["low"], one["high"])
        weight = f"{100.0 * one['weight']:.0f} %" if one["weight"] else ""
        rows, seconds = f"{one['rows']:,}", f"{one['seconds']:.1f}"
        grid.add_row(one["member"], area, f"{low}–{high}", weight, rows, seconds)
    return grid


def _race(members: Sequence[Mapping[str, Any]]) -> Table:
    grid = table("member", "rows", "progressive AUC", "behind", "weight")
    for one in members:
        area, rows = f"{one['auc']:.4f} ± {one['se']:.4f}", f"{one['rows']:,}"
        behind = f"{one['behind']:.4f}" if one["behind"] else ""
        weight, style = f"{100.0 * one['weight']:.0f} %", ""
        if not one["running"]:
            weight, style = "out", "dim"
        grid.add_row(one["member"], rows, area, behind, weight, style=style)
    return grid


def importance_table(columns: Sequence[Mapping[str, Any]]) -> Table:
    """Return the columns with the largest permutation importance."""
    grid = table("column", "AUC loss when shuffled", "95 % CI")
    for one in columns[:_MAX_IMPORTANCES]:
        limits = f"{one['low']:+.4f} to {one['high']:+.4f}"
        grid.add_row(one["column"], f"{one['drop']:.4f}", limits)
    return grid


def held_out_auc(judged: Mapping[str, Any]) -> str:
    """Return the AUC on held-out rows or test data, as text."""
    area = judged["auc"]
    value, low, high = with_interval(area["value"], area["low"], area["high"])
    where = "test" if judged["on"] == "test" else "held-out"
    weighted = "weighted " if judged["weighted"] else ""
    return (
        f"AUC {value}, 95 % confidence interval {low} to {high}, on "
        f"{judged['rows']:,} {weighted}{where} rows"
    )


def cross_validated(value: float, low: float, high: float) -> str:
    """Return a cross-validated value with its confidence interval, as text."""
    texts = with_interval(value, low, high)
    return "{}, 95 % confidence interval {} to {}, cross-validated".format(*texts)


def plural(count: int, noun: str) -> str:
    """Return "1 row", "2,000 rows"."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """Return a duration for people: 0.4 s, 12 s, 3:05, 2:10:00."""
    if seconds < 60.0:
        return f"{seconds:.1f} s" if seconds < 10.0 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
