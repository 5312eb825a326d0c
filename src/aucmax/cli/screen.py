"""What a person sees: bars while something runs, then lines and tables."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text


class Screen:
    """Lines and tables on standard output, bars on standard error.

    Bars are for terminals. Elsewhere there are none, and a line for each step when it
    is done. ``quiet`` leaves standard output to the machine.
    """

    def __init__(self, quiet: bool = False, bars: bool = True) -> None:
        self._console = Console(quiet=quiet, highlight=False, markup=False)
        self._bars = Console(stderr=True, highlight=False, markup=False)
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

    @contextmanager
    def reading(
        self, label: str, size: int | None
    ) -> Iterator[Callable[[int, int], None]]:
        """Show how far reading has come, how fast it is, and how long it will take.

        The function given takes the rows and the bytes done since the beginning, of
        ``size`` bytes; see ``Source.size`` and ``Chunk.done``.
        """
        columns: list[ProgressColumn] = [_Rows(), _Megabytes()]
        if size:  # without it nobody knows how much is left
            columns = [BarColumn(bar_width=20), _Share(), *columns, _Left()]
        with self._progress(label, *columns) as progress:
            task = progress.add_task(label, total=size, rows=0)
            yield lambda rows, done: progress.update(task, completed=done, rows=rows)

    def _progress(self, label: str, *columns: ProgressColumn) -> Progress:
        return Progress(
            SpinnerColumn(),
            TextColumn(label, markup=False),
            *columns,
            console=self._bars,
            transient=True,
            disable=not self._has_bars,
        )


def table(first: str, *others: str) -> Table:
    """Return an empty table: a column of names, then columns of numbers."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column(first)
    for name in others:
        grid.add_column(name, justify="right")
    return grid


def seconds(time: float) -> str:
    """Return a time as people say it: 0.4 s, 12 s, 3:05, 2:10:00."""
    if time < 60.0:
        return f"{time:.1f} s" if time < 10.0 else f"{time:.0f} s"
    minutes, rest = divmod(round(time), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Share(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.percentage:3.0f} %")


class _Rows(ProgressColumn):
    def render(self, task: Task) -> Text:
        rows = task.fields["rows"]
        rate = f", {rows / task.elapsed:,.0f}/s" if rows and task.elapsed else ""
        return Text(f"{rows:,} rows{rate}")


class _Megabytes(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed / 1e6:,.0f} MB/s" if task.speed else "")


class _Left(ProgressColumn):
    def render(self, task: Task) -> Text:
        left = task.time_remaining
        return Text("" if left is None else f"{seconds(left)} left", "cyan")


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} rows/s" if task.speed else "", "progress.data")
