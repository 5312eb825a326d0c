"""Decimal places of a number that has a confidence interval."""

from math import floor, log10

_FEWEST, _MOST = 2, 6


def decimals(low: float, high: float) -> int:
    """Return the decimal places that show two digits of the standard error.

    This is taken for a quarter of the interval, as of one of 95 %. From 2 to 6 places.
    """
    error = (high - low) / 4.0
    if not error > 0.0:
        return _MOST
    return min(max(1 - floor(log10(error)), _FEWEST), _MOST)


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Return a value and the ends of its interval, with as many decimal places."""
    places = decimals(low, high)
    return f"{value:.{places}f}", f"{low:.{places}f}", f"{high:.{places}f}"
