"""Spelling of options in messages: command line or Python."""

from typing import Any

_FLAGS = ("label", "missing", "positive")  # the others are given by --input

_command_line = [False]  # one for all threads: readers have some of their own


def tell_command_line(tell: bool) -> bool:
    """Choose how options are named from now on; return how they were before."""
    before, _command_line[0] = _command_line[0], tell
    return before


def option(name: str, value: Any) -> str:
    """Return an option with its value, to be copied."""
    if not _command_line[0]:
        return f"{name}={value!r}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"--{name} {text}" if name in _FLAGS else f"--input {name}={text}"
