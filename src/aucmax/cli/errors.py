"""Errors and warnings of commands, told in one line each."""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer

from aucmax.cli.printable import printable
from aucmax.storage.standard_output import whole_output
from aucmax.tables.options import tell_command_line

_NOTED = ("ConvergenceWarning", "DataWarning")
_INTERRUPTED = 130  # what shells report for a process ended by Ctrl-C


@contextmanager
def errors_in_one_line(debug: bool) -> Iterator[None]:
    """Turn what is no fault of the program into one line and an exit code."""
    debug = debug or os.environ.get("AUCMAX_DEBUG", "0") != "0"
    before = tell_command_line(True)
    try:
        with whole_output(), warnings.catch_warnings():
            warnings.showwarning = partial(_note, warnings.showwarning, set())
            yield
    except KeyboardInterrupt:
        if debug:
            raise
        typer.echo("Interrupted.", err=True)
        raise typer.Exit(_INTERRUPTED) from None
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if debug or _is(error, errno.EPIPE):  # a closed pipe: typer ends quietly
            raise
        typer.echo(f"Error: {printable(_in_words(error))}", err=True)
        _drop_output()
        raise typer.Exit(1) from None
    finally:
        tell_command_line(before)


def _note(
    otherwise: Any, told: set[str], message: Warning, category: type, *place: Any
) -> None:
    """Tell what is odd about the data or the model, as a line for people, once."""
    # The names, as what they are from is slow to import.
    if issubclass(category, UnicodeWarning) or category.__name__ in _NOTED:
        if str(message) not in told:
            typer.echo(f"Note: {printable(str(message))}", err=True)
            told.add(str(message))
    else:
        otherwise(message, category, *place)


def occupy_closed_streams() -> None:
    """Open something in place of closed streams, lest a file get the number of one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _drop_output() -> None:
    """Let go of what standard output has no room for: it would fail again at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is(error: Exception, number: int) -> bool:
    return isinstance(error, OSError) and error.errno == number


def _in_words(error: Exception) -> str:
    """Return what is wrong in one line, the file first if there is one."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    words = " ".join(str(error).split()) or type(error).__name__
    if _is_ours(error):
        return words
    return f"{words} (aucmax --debug … shows where this comes from)"


def _is_ours(error: Exception) -> bool:
    """Return whether the package itself raised it, with words meant for people."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_globals.get("__name__", "") if trace is not None else ""
    return str(name).partition(".")[0] in ("aucmax", "aucmax_reproduction")
