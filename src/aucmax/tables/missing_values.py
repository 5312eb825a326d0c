"""Missing-value markers: words and numbers such as NA and -999."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# "none" is not among them: it is a category in some data.
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
