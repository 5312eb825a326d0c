"""Spelling of options in messages: command line or Python."""

from typing import Any

_FLAGS = ("label", "missing", "positive")  # the others are given by --input

_command_line = [False]  # shared by all threads


def tell_command_line(tell: bool) -> bool:
    """Set how options are spelt; return the previous setting."""
    before, _command_line[0] = _command_line[0], tell
    return before


def option(name: str, value: Any) -> str:
    """Return an option with its value, as the user would write it."""
    if not _command_line[0]:
        return f"{name}={value!r}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"--{name} {text}" if name in _FLAGS else f"--input {name}={text}"
