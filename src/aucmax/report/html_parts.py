"""Parts of an HTML page: tables and numbers."""

from collections.abc import Sequence
from html import escape
from math import isfinite

from aucmax.metrics._ranking import decimals


def as_text(value: object) -> str:
    """Return a value, or a list of values, as text."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(one) for one in value)
    return str(value)


def html_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    words: bool = False,
) -> str:
    """Return a table; the first column names the line, others are numbers or words."""
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    if any(heads):
        names = "".join(f"<th>{escape(head)}</th>" for head in heads)
        top += f"<thead><tr>{names}</tr></thead>"
    lines = []
    for row in rows:
        first, *others = row
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        lines.append(f"<tr><th>{escape(first)}</th>{cells}</tr>")
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll"><table{kind}>{top}<tbody>{"".join(lines)}</tbody></table>'
        "</div>"
    )


def with_digits(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Format a value and its interval, with digits that the interval supports."""
    if not isfinite(value):
        return "–", "–", "–"
    places = decimals(low, high) if isfinite(low) else 4
    return f"{value:.{places}f}", f"{low:.{places}f}", f"{high:.{places}f}"


def as_percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{100.0 * share:.2f} %" if share < 0.0995 else f"{100.0 * share:.1f} %"
