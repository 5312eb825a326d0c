"""Missing-value markers: words and numbers that stand for a missing value."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Always known. "none" is not among them: in credit data it means something.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None")

_LONGEST = 255  # bytes


def check_markers(markers: Sequence[str]) -> None:
    """Raise a ValueError if a marker given by the user could not be a cell."""
    for marker in markers:
        if not isinstance(marker, str) or marker != marker.strip() or not marker:
            raise ValueError(
                f"na has {marker!r}: a marker is a word without blanks around it"
            )
        if len(marker.encode(errors="replace")) > _LONGEST:
            raise ValueError(f"na has {marker[:20]!r}…, longer than {_LONGEST} bytes")


def are_absent(markers: Sequence[str], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers are missing-value markers, such as -999."""
    numbers = [number for word in markers if (number := _number(word)) is not None]
    return np.isin(values, np.array(numbers, values.dtype))


def _number(marker: str) -> float | None:
    try:
        return float(marker)
    except ValueError:
        return None
