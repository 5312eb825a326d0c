"""Numbers as text: decimal places of estimates, and text that is read back."""

from math import floor, log10

_FEWEST, _MOST = 2, 6


def decimals(low: float, high: float) -> int:
    """Return the number of decimals (2 to 6) that shows two digits of the error.

    The standard error is taken as a quarter of the interval, as for 95 %.
    """
    error = (high - low) / 4.0
    if not error > 0.0:
        return _MOST
    return min(max(1 - floor(log10(error)), _FEWEST), _MOST)


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Format a value and its interval with that number of decimals."""
    places = decimals(low, high)
    return f"{value:.{places}f}", f"{low:.{places}f}", f"{high:.{places}f}"


def exact(number: float) -> str:
    """Return a number as short text that is read back as the same number."""
    if not isinstance(number, float):
        return str(number)
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))
