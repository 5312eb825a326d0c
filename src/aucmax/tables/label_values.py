"""Comparison, order and display of labels."""

import re
import shlex
from collections.abc import Iterable
from typing import Any, TypeAlias

from aucmax.tables import label_meanings

Label: TypeAlias = float | str

_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def label_key(label: Any) -> Label | None:
    """Return the value that labels are compared by; None if missing."""
    if isinstance(label, str):
        text = label.strip()
        return float(text) if _NUMBER.fullmatch(text) else text or None
    if label is None or label != label:
        return None
    return float(label)


def label_identity(label: Label) -> Label:
    """Return the value that all spellings of a label share."""
    return label_meanings.identity(label) if isinstance(label, str) else label


def label_order(label: Label) -> tuple[bool, Label]:
    """Return a sort key: numbers first."""
    return isinstance(label, str), label


def shown_label(label: Any) -> str:
    """Return a label for display."""
    key = label_key(label)
    if isinstance(key, float):
        return str(int(key)) if key.is_integer() and abs(key) < 1e15 else repr(key)
    return str(key)


def shell_argument(label: Label) -> str:
    """Return a label as a shell argument of ``--positive``."""
    text = _quoted(shown_label(label))
    if text[:1] in (">", "@"):  # would be a rule
        text = f'"{text}"'
    return shlex.quote(text)


def _quoted(label: str) -> str:
    """Return a label, quoted if necessary in a list of labels."""
    if "," not in label and label[:1] != '"':
        return label
    doubled = label.replace('"', '""')
    return f'"{doubled}"'


def listed_labels(labels: Iterable[Label], most: int = 8) -> str:
    """Return sorted labels for a message, at most ``most``."""
    names = [_quoted(shown_label(label)) for label in sorted(labels, key=label_order)]
    if len(names) > most:
        names[most - 2 : -1] = ["…"]
    return ", ".join(names)
