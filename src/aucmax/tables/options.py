"""Spelling of options in messages: command line or Python."""

import shlex
from typing import Any

_COLUMNS = ("drop", "categorical", "text")  # take a list of columns
_FLAGS = ("label", "missing", "positive")  # the others are given by --input

_command_line = [False]  # shared by all threads


def tell_command_line(tell: bool) -> bool:
    """Set how options are spelt; return the previous setting."""
    before, _command_line[0] = _command_line[0], tell
    return before


def in_python() -> bool:
    """Return whether options are spelt as in Python."""
    return not _command_line[0]


def option(name: str, value: Any) -> str:
    """Return an option with its value, or a column, as the user would write it."""
    if in_python():
        return f"{name}={[value] if name in _COLUMNS else value!r}"
    text = str(value).lower() if isinstance(value, bool) else shlex.quote(str(value))
    return f"--{name} {text}" if name in _FLAGS else f"--input {name}={text}"
