"""What a person sees: bars while something runs, then lines and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.table import Column as Field
from rich.table import Table
from rich.text import Text as Line

from aucmax.cli.printable import printable
from aucmax.io.text import Text
from aucmax.metrics.decimals import with_interval
from aucmax.tables.column_kinds import LEFT_OUT, NUMBER, Column

# What users call their columns is not to be taken for colours or emoji.
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}


_MOST_PLAIN, _MOST_COLUMNS = 12, 40  # lines of a table of columns


class Console(RichConsole):
    """A console on which text cannot do anything but be read."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield segments; rich itself leaves escape sequences in."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else printable(text), style, control)


class Screen:
    """Lines and tables on standard output, bars on standard error.

    Bars are for terminals. Elsewhere there are none, and a line for each step when it
    is done. ``quiet`` leaves standard output to the machine.
    """

    def __init__(self, quiet: bool = False, bars: bool = True) -> None:
        self._console = Console(quiet=quiet, **_PLAIN)
        self._bars = Console(stderr=True, **_PLAIN)
        self._has_bars = bars and self._bars.is_terminal

    def print(self, text: str = "", style: str = "", wrap: bool = True) -> None:
        """Print a line or more; ``wrap=False`` for what is to be copied."""
        self._console.print(text, style=style, soft_wrap=not wrap)

    def show(self, table: RenderableType) -> None:
        """Print a table, or whatever else rich can draw."""
        self._console.print(table)

    def warn(self, text: str) -> None:
        """Print to standard error, where it is in nobody's way."""
        self._bars.print(text, style="yellow", soft_wrap=True)

    @contextmanager
    def step(
        self, label: str, n_rows: int | None = None
    ) -> Iterator[Callable[[int], None]]:
        """Show that something runs; the function given counts the rows done."""
        start = perf_counter()
        columns: list[ProgressColumn] = [TimeElapsedColumn()]
        if n_rows is not None:
            columns = [BarColumn(), MofNCompleteColumn(), _Speed()]
        with self._progress(label, *columns) as progress:
            task = progress.add_task(label, total=n_rows)
            yield lambda rows: progress.advance(task, rows)
        if not self._has_bars:
            self.print(f"{label}: {perf_counter() - start:.1f} s")

    def _progress(self, label: str, *columns: ProgressColumn) -> Progress:
        return Progress(
            SpinnerColumn(),
            TextColumn(label, markup=False),
            *columns,
            console=self._bars,
            transient=True,
            disable=not self._has_bars,
        )


class Meter:
    """Takes how far reading has come."""

    def __init__(
        self, progress: "_Reading", task: TaskID, size: int | None, label: str
    ) -> None:
        self._progress, self._task, self._size = progress, task, size
        self._label = label

    def __call__(
        self, done: int, rows: int, passes: int = 0, auc: float | None = None
    ) -> None:
        """Take bytes read in this pass, rows of all passes, passes that are over."""
        before = (self._size or 0) * passes
        total = self._progress.tasks[self._task].total
        if total is not None and before + done > total:
            before = 0
        self._progress.update(
            self._task,
            completed=before + done,
            rows=rows,
            auc=auc,
            description=self._label,
        )

    def board(self, lines: Sequence[Any]) -> None:
        """Show how the members of a race stand, below the bar."""
        self._progress.board = leaderboard([line._asdict() for line in lines])

    def label(self, text: str) -> None:
        """Say what goes on now, for nobody knows how long: the bar swings."""
        task = self._progress.tasks[self._task]
        task.total = None
        self._label = text
        self._progress.update(self._task, description=text, refresh=True)


class _Reading(Progress):
    """Bars, and a table below them."""

    board: RenderableType | None = None

    def get_renderables(self) -> Iterator[RenderableType]:
        yield from super().get_renderables()
        if self.board is not None:
            yield self.board


@contextmanager
def reading(
    paths: Sequence[str],
    *,
    passes: int | None = 1,
    label: str = "Reading",
    shown: bool = True,
) -> Iterator[Meter]:
    """Show how far reading has come, how fast it is, and how long it will take.

    On standard error, if that is a terminal. The time left is that of all ``passes``,
    or that of the present one if nobody knows how many there will be.
    """
    console = Console(stderr=True, **_PLAIN)
    size = Text(paths).size
    columns: list[ProgressColumn] = [_Rows(), _Megabytes()]
    if size:  # without it nobody knows how much is left
        columns = [
            BarColumn(None, table_column=Field(ratio=1)),
            _Share(),
            *columns,
            _Left(),
        ]
    with _Reading(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *columns,
        console=console,
        transient=True,
        expand=bool(size),
        disable=not (shown and console.is_terminal),
    ) as progress:
        total = None if size is None else size * (passes or 1)
        # The first time on a machine, nothing happens for a while.
        task = progress.add_task(
            "Starting, or compiling", total=total, rows=0, auc=None
        )
        yield Meter(progress, task, size, label)


def table(first: str, *others: str) -> Table:
    """Return an empty table: a column of names, then columns of numbers."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column(first, overflow="fold")
    for name in others:  # in a narrow terminal, half a number would be a wrong one
        grid.add_column(name, justify="right", overflow="fold")
    return grid


def columns_table(roles: Sequence[Mapping[str, Any]]) -> Table | None:
    """Return what the columns of a table are taken for; None if nobody needs it said.

    Of many plain numbers there is one line.
    """
    columns = [Column(**role) for role in roles]
    plain = [c.role == NUMBER and not (c.missing or c.notation) for c in columns]
    few = sum(plain) <= _MOST_PLAIN
    shown = [c for c, hidden in zip(columns, plain, strict=True) if few or not hidden]
    if not shown:
        return None
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("column", "role", "distinct", "missing", "what became of it"):
        right = name in ("distinct", "missing")
        grid.add_column(name, justify="right" if right else "left", overflow="fold")
    for column in shown[:_MOST_COLUMNS]:
        some = f"{100.0 * column.missing / max(column.rows, 1):.3g} %"
        style = "dim" if column.role in LEFT_OUT else ""
        grid.add_row(
            column.name,
            column.role,
            f"{column.distinct:,}",
            some if column.missing else "",
            column.became,
            style=style,
        )
    rest = len(columns) - len(shown[:_MOST_COLUMNS])
    if rest:
        grid.add_row(f"… {rest:,} more")
    return grid


def judgement(judged: Mapping[str, Any]) -> str:
    """Return how good a model was on rows that it had not learnt."""
    area, weighted = judged["auc"], "weighted " if judged["weighted"] else ""
    value, low, high = with_interval(area["value"], area["low"], area["high"])
    return (
        f"AUC {value}, 95 % interval {low} to {high}, on {judged['rows']:,} "
        f"{weighted}rows "
        + ("of the test data" if judged["on"] == "test" else "held out")
    )


def leaderboard(lines: Sequence[dict[str, Any]]) -> Table:
    """Return how members stand, of a race or of a blend."""
    if lines and "running" in lines[0]:
        return _race(lines)
    grid = table("member", "AUC", "95 % interval", "weight", "rows", "seconds")
    for line in lines:
        area, low, high = with_interval(line["auc"], line["low"], line["high"])
        grid.add_row(
            line["member"],
            area,
            f"{low}–{high}",
            f"{100.0 * line['weight']:.0f} %" if line["weight"] else "",
            f"{line['rows']:,}",
            f"{line['seconds']:.1f}",
        )
    return grid


def _race(lines: Sequence[dict[str, Any]]) -> Table:
    grid = table("member", "rows", "progressive AUC", "behind", "weight")
    for line in lines:
        area = f"{line['auc']:.4f} ± {line['se']:.4f}"
        runs = line["running"]
        share = f"{100.0 * line['weight']:.0f} %" if runs else "out"
        behind = f"{line['behind']:.4f}" if line["behind"] else ""
        rows, style = f"{line['rows']:,}", "" if runs else "dim"
        grid.add_row(line["member"], rows, area, behind, share, style=style)
    return grid


def worth(lines: Sequence[dict[str, Any]], most: int = 8) -> Table:
    """Return what the best columns are worth."""
    grid = table("column", "AUC falls, when it is shuffled, by", "95 % interval")
    for line in lines[:most]:
        sure = f"{line['low']:+.4f} to {line['high']:+.4f}"
        grid.add_row(line["column"], f"{line['drop']:.4f}", sure)
    return grid


def some(count: int, what: str) -> str:
    """Return "1 row", "2,000 rows"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def seconds(time: float) -> str:
    """Return a time as people say it: 0.4 s, 12 s, 3:05, 2:10:00."""
    if time < 60.0:
        return f"{time:.1f} s" if time < 10.0 else f"{time:.0f} s"
    minutes, rest = divmod(round(time), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Words(ProgressColumn):
    """Words that stay on one line; the bar is what gives way."""

    def __init__(self) -> None:
        super().__init__(Field(no_wrap=True))


class _Share(_Words):
    def render(self, task: Task) -> Line:
        return Line("" if task.total is None else f"{task.percentage:3.0f} %")


class _Rows(_Words):
    def render(self, task: Task) -> Line:
        rows = task.fields["rows"]
        rate = f", {rows / task.elapsed:,.0f}/s" if rows and task.elapsed else ""
        auc = task.fields["auc"]
        judged = "" if auc is None else f", AUC {auc:.4f}"
        return Line(f"{rows:,} rows{rate}{judged}")


class _Megabytes(_Words):
    def render(self, task: Task) -> Line:
        return Line(f"{task.speed / 1e6:,.0f} MB/s" if task.speed else "")


class _Left(_Words):
    def render(self, task: Task) -> Line:
        left = task.time_remaining  # whole seconds
        if left is None:
            return Line("")
        return Line(f"{seconds(left) if left >= 10 else f'{left:.0f} s'} left", "cyan")


class _Speed(_Words):
    def render(self, task: Task) -> Line:
        return Line(f"{task.speed:,.0f} rows/s" if task.speed else "", "progress.data")
