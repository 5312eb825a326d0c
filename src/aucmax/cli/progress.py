"""How many fits are done: a bar in a terminal, a line now and then in a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from aucmax.cli.screen import Console, some

_SILENCE = 2.0  # seconds


@contextmanager
def fits_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Show what is at work, how many fits are done, and the time left.

    The function given takes these: what, fits done, and fits in all.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    ) as bars:
        bar = bars.add_task("", total=None)
        yield lambda name, done, total: bars.update(
            bar, description=name, completed=done, total=total
        )


def _lines(console: Console) -> Callable[[str, int, int], None]:
    """Return what says a line now and then, for who keeps a log."""
    said = monotonic()

    def watch(name: str, done: int, total: int) -> None:
        nonlocal said
        if monotonic() - said >= _SILENCE:
            console.print(f"{name}: {done:,} of {some(total, 'fit')}", markup=False)
            said = monotonic()

    return watch
