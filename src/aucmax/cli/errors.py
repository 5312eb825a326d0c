"""Errors and warnings of commands, reported in one line each."""

import errno
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer

from aucmax.cli.printable import printable
from aucmax.storage.standard_output import whole_output

# By name: the modules that define them are slow to import.
_REPORTED = ("ConvergenceWarning", "DataWarning")
_INTERRUPTED = 130  # what shells report for a process ended by Ctrl-C


@contextmanager
def errors_in_one_line(debug: bool) -> Iterator[None]:
    """Report errors of users and of the system in one line, with an exit code."""
    debug = debug or os.environ.get("AUCMAX_DEBUG", "0") != "0"
    try:
        with whole_output(), warnings.catch_warnings():
            warnings.showwarning = partial(_report, warnings.showwarning, set())
            yield
    except KeyboardInterrupt:
        if debug:
            raise
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except (OSError, ValueError, ImportError, MemoryError) as error:
        closed_pipe = isinstance(error, OSError) and error.errno == errno.EPIPE
        if debug or closed_pipe:  # typer exits quietly if the pipe is closed
            raise
        _say(f"Error: {_message(error)}")
        _discard_output()
        raise typer.Exit(1) from None


def _report(
    default: Any, reported: set[str], message: Warning, category: type, *place: Any
) -> None:
    """Print a warning about the data or the model as a note, once."""
    if not (issubclass(category, UnicodeWarning) or category.__name__ in _REPORTED):
        default(message, category, *place)
    elif str(message) not in reported:
        _say(f"Note: {message}")
        reported.add(str(message))


def _say(text: str) -> None:
    """Print one line to standard error; in a terminal, wrap it between words."""
    text = printable(text)
    if sys.stderr is not None and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        # Paths, commands and options stay whole, to be copied.
        text = textwrap.fill(
            text, width, break_long_words=False, break_on_hyphens=False
        )
    typer.echo(text, err=True)


def occupy_closed_streams() -> None:
    """Open the null device for closed standard streams.

    Otherwise, a file opened later gets the descriptor of a standard stream.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # returns the lowest free descriptor


def _discard_output() -> None:
    """Discard buffered output that cannot be written: it would fail again at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: Exception) -> str:
    """Return the error in one line, beginning with the file if there is one."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    if _raised_here(error):
        return text
    return f"{text} (aucmax --debug … shows the traceback)"


def _raised_here(error: Exception) -> bool:
    """Return whether aucmax raised the error itself, with a message for users."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return str(name).partition(".")[0] in ("aucmax", "aucmax_reproduction")
