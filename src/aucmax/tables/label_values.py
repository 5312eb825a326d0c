"""Labels one by one: how they are compared, sorted and shown."""

import re
import shlex
from collections.abc import Iterable
from typing import Any, TypeAlias

from aucmax.tables import label_meanings

Label: TypeAlias = float | str

_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def label_key(label: Any) -> Label | None:
    """Return what is compared of a label; None if it is missing."""
    if isinstance(label, str):
        text = label.strip()
        return float(text) if _NUMBER.fullmatch(text) else text or None
    if label is None or label != label:
        return None
    return float(label)


def label_identity(label: Label) -> Label:
    """Return what all spellings of a label have in common."""
    return label_meanings.identity(label) if isinstance(label, str) else label


def label_order(label: Label) -> tuple[bool, Label]:
    """Return a key to sort labels: numbers first."""
    return isinstance(label, str), label


def shown_label(label: Any) -> str:
    """Return a label for people."""
    key = label_key(label)
    if isinstance(key, float):
        return str(int(key)) if key.is_integer() and abs(key) < 1e15 else repr(key)
    return str(key)


def shell_argument(label: Label) -> str:
    """Return a label as one writes it after ``--positive`` in a shell."""
    text = _quoted(shown_label(label))
    if text[:1] in (">", "@"):  # which would be a rule
        text = f'"{text}"'
    return shlex.quote(text)


def _quoted(label: str) -> str:
    """Return a label as ``--positive`` takes it among others."""
    if "," not in label and label[:1] != '"':
        return label
    doubled = label.replace('"', '""')
    return f'"{doubled}"'


def listed_labels(labels: Iterable[Label], most: int = 8) -> str:
    """Return labels for people, in their order, not too many of them."""
    names = [_quoted(shown_label(label)) for label in sorted(labels, key=label_order)]
    if len(names) > most:
        names[most - 2 : -1] = ["…"]
    return ", ".join(names)
