"""Number and date formats: percent, thousands separators, currencies, dates.

A column has one format. In a column with decimal commas, a point groups thousands:
"2.500" is 2500, and "2.5" is malformed. A column in which no cell has a comma, such as
"2.500" and "12.500", has plain numbers unless the user sets the decimal separator.

Only the distinct values of a column are parsed, so speed does not matter.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from aucmax.tables.cells import Float, Words

_BLANKS = " '\u2019\u00a0\u202f"  # thousands separators, as in 12'000 and 12 000
_THOUSANDS = re.compile(
    rf"[-+]?[1-9]\d{{0,2}}([,{_BLANKS}])\d{{3}}(\1\d{{3}})*(\.\d*)?"
)
_COMMA = re.compile(
    rf"[-+]?(?:\d+(?:,\d+)?(?:[eE][-+]?\d+)?"
    rf"|[1-9]\d{{0,2}}([.{_BLANKS}])\d{{3}}(?:\1\d{{3}})*(?:,\d+)?)"
)
# Without the blanks around it: the search would take quadratic time.
_CURRENCY = re.compile(r"[$€£¥₹₽₩]|\b(?:USD|EUR|GBP|CHF|JPY)\b")
_PLAIN = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_DATE = re.compile(
    r"(\d{4}|\d\d?)([-/.])(\d\d?)\2(\d{4}|\d\d?)"
    r"(?:[T ]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
_CLOCK = re.compile(
    r"(\d\d?):([0-5]\d)(?::([0-5]\d)(?:[.,]\d+)?)?(?:\s*([ap])\.?m\.?)?", re.I
)
_MONTH = re.compile(r"(\d{4})[-/.](\d\d?)|(\d\d?)[-/.](\d{4})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)

YES = ("yes", "y", "true", "t", "ja", "oui", "si", "sí", "on")
NO = ("no", "n", "false", "f", "nein", "non", "off")
_BOOLEAN = dict.fromkeys(YES, 1.0) | dict.fromkeys(NO, 0.0)
_PIVOT = 69  # as in POSIX: years 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068

NUMBERS = ("percent", "percent comma", "thousands", "comma", "boolean", "clock")
DATES = ("ymd", "dmy", "mdy", "month")


def find_notation(values: list[str], decimal: str | None = None) -> str:
    """Return the number format of most values; "" if there is none.

    ``decimal`` is the decimal separator, if known.
    """
    if not values:
        return ""
    counts = dict.fromkeys(NUMBERS, 0)
    dates = months = plain = money = commas = grouped = percents = signs = 0
    for whole in values:
        value = _without_currency(whole)
        money += value != whole
        is_plain = _PLAIN.fullmatch(value) is not None
        plain += is_plain
        if value.endswith("%"):
            point, comma = map(np.isfinite, (_percent(value), _percent_comma(value)))
            percents += point or comma
            counts["percent"] += point
            counts["percent comma"] += comma
            signs += "," in value
        counts["thousands"] += _THOUSANDS.fullmatch(value) is not None
        if _COMMA.fullmatch(value):
            commas += 1
            counts["comma"] += not is_plain
            grouped += is_plain and "." in value
        dates += _DATE.fullmatch(value) is not None
        counts["clock"] += _CLOCK.fullmatch(value) is not None
        months += not np.isnan(_month(value))
    most = 0.9 * len(values)
    if dates >= most:
        return _order(values)
    if months >= most and plain < most:  # 12.2024 may be a number
        return "month"
    if counts["clock"] >= most:
        return "clock"
    if percents and percents + plain >= most:
        # 1,234 % has a decimal comma, unless other values have decimal points.
        comma = signs and counts["percent comma"] >= counts["percent"]
        comma = comma if decimal is None else decimal == ","
        return "percent comma" if comma else "percent"
    # 1,234 has a thousands separator, unless other values have decimal commas.
    comma = counts["thousands"] < counts["comma"]
    kinds = ["comma", "thousands"] if comma else ["thousands", "comma"]
    if decimal is not None:
        kinds = ["comma"] if decimal == "," else ["thousands"]
    for kind in kinds:
        if kind == "comma" and 2 * commas < len(values):
            continue  # most have decimal points
        evident = counts[kind] or money or (decimal == "," and grouped)
        if evident and counts[kind] + plain >= most:
            return kind
    return ""


def _order(values: list[str]) -> str:
    """Return the order of day, month and year."""
    found = [match for value in values if (match := _DATE.fullmatch(value))]
    if sum(len(match[1]) == 4 for match in found) > len(found) / 2:
        return "ymd"
    if any(int(match[1]) > 12 for match in found if len(match[1]) < 3):
        return "dmy"
    if any(int(match[3]) > 12 for match in found if len(match[1]) < 3):
        return "mdy"
    return "mdy" if found[0][2] == "/" else "dmy"


def read(notation: str, column: Words) -> tuple[Float, Any]:
    """Return the values as numbers, NaN if missing, and which are malformed.

    Dates are seconds since 1970, in UTC unless they have a time zone.
    """
    reader = _READERS[notation]
    numbers = np.array([*map(reader, column.values), np.nan])[column.codes]
    return numbers, np.isnan(numbers) & (column.codes >= 0)


def middle(notation: str, values: list[str]) -> float:
    """Return the median of distinct values; zero if none can be parsed."""
    numbers = np.array([_READERS[notation](value) for value in values])
    known = numbers[np.isfinite(numbers)]
    return float(np.median(known)) if len(known) else 0.0


def is_plain(text: str) -> bool:
    """Return whether a text is a number without a special format."""
    return _PLAIN.fullmatch(text.strip()) is not None


def _number(text: str) -> float:
    text = text.strip()
    return float(text) if _PLAIN.fullmatch(text) else np.nan


def _thousands(text: str) -> float:
    text = _without_currency(text.strip())
    match = _THOUSANDS.fullmatch(text)
    return float(text.replace(match[1], "")) if match else _number(text)


def _comma(text: str) -> float:
    text = _without_currency(text.strip())
    match = _COMMA.fullmatch(text)
    if match is None:
        return float(np.nan)
    return float(text.replace(match[1] or ".", "").replace(",", "."))


def _percent(text: str) -> float:
    text = text.strip()
    return _thousands(text[:-1]) / 100.0 if text[-1:] == "%" else _thousands(text)


def _percent_comma(text: str) -> float:
    text = text.strip()
    return _comma(text[:-1]) / 100.0 if text[-1:] == "%" else _comma(text)


def _boolean(text: str) -> float:
    return _BOOLEAN.get(text.strip().lower(), _number(text))


def _clock(text: str) -> float:
    """Return a time of day in hours."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return _number(text)
    hour, minute, second, half = match.groups()
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    if hours > 24 or (half and not 1 <= int(hour) <= 12):
        return float(np.nan)
    return hours + int(minute) / 60.0 + int(second or 0) / 3600.0


def _month(text: str) -> float:
    """Return the first second of a month."""
    match = _MONTH.fullmatch(text.strip())
    if match is None:
        return float(np.nan)
    year, month = int(match[1] or match[4]), int(match[2] or match[3])
    if not 1 <= month <= 12 or year < 1:
        return float(np.nan)
    return (datetime(year, month, 1, tzinfo=UTC) - _EPOCH) / _SECOND


def _without_currency(text: str) -> str:
    """Remove a currency: -$5 becomes -5, and 5 EUR becomes 5."""
    found = _CURRENCY.search(text)
    if found is None:
        return text
    return text[: found.start()].rstrip() + text[found.end() :].lstrip()


def _date(order: str) -> Callable[[str], float]:
    def seconds(text: str) -> float:
        match = _DATE.fullmatch(text.strip())
        if match is None:
            return np.nan
        first, _, middle, last, hour, minute, second, fraction, zone = match.groups()
        parts = dict(zip(order, (first, middle, last), strict=True))
        if len(first) == 4:
            parts = dict(zip("ymd", (first, middle, last), strict=True))
        year = int(parts["y"])
        if len(parts["y"]) < 3:
            year += 1900 if year >= _PIVOT else 2000
        try:
            moment = datetime(
                year,
                int(parts["m"]),
                int(parts["d"]),
                int(hour or 0),
                int(minute or 0),
                int(second or 0),
                int((fraction or "0").ljust(6, "0")),
                tzinfo=UTC,
            )
            if zone and zone[0] in "+-":
                digits = zone[1:].replace(":", "").ljust(4, "0")
                offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
                moment -= offset if zone[0] == "+" else -offset
        except (OverflowError, ValueError):  # year 10000, 31 February
            return np.nan
        return (moment - _EPOCH) / _SECOND

    return seconds


_READERS: dict[str, Callable[[str], float]] = {
    "percent": _percent,
    "percent comma": _percent_comma,
    "thousands": _thousands,
    "comma": _comma,
    "boolean": _boolean,
    "clock": _clock,
    "month": _month,
    **{order: _date(order) for order in ("ymd", "dmy", "mdy")},
}
