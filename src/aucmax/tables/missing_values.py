"""Missing-value markers of the user."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_LONGEST = 255  # bytes


def check_words(words: Sequence[str]) -> None:
    """Raise a ValueError if some are no words that a cell could hold."""
    for word in words:
        if not isinstance(word, str) or word != word.strip() or not word:
            raise ValueError(
                f"na has {word!r}: markers must not be empty or have blanks around them"
            )
        if len(word.encode(errors="replace")) > _LONGEST:
            raise ValueError(
                f"na has {word[:20]!r}…: markers have at most {_LONGEST} bytes"
            )


def as_bytes(words: Sequence[str]) -> Bytes:
    """Return words as kernels take them: the length of each, then its letters."""
    text = bytearray()
    for word in words:
        letters = word.encode(errors="replace")
        text += bytes([len(letters)]) + letters
    return np.frombuffer(text, np.uint8) if text else np.empty(0, np.uint8)


def are_absent(words: Sequence[str], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are missing-value markers, such as -999."""
    numbers = [number for word in words if (number := _number(word)) is not None]
    return np.isin(values, np.array(numbers, values.dtype))


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
