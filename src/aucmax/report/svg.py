"""Small charts as SVG text, for pages that must be readable without scripts.

Colours and line styles are classes of the page's style sheet. A chart tells its scales,
so that a script can move a marker on it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_WIDTH, _HEIGHT = 400, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 22, 12, 42
_MAX_TICKS = 6
_LETTER = 7.5  # width of a character of a name, with the gap to the next name
_LONGEST = 12  # characters of a name below the x axis


class Chart:
    """A chart with linear axes.

    Parameters
    ----------
    name : str
        Name by which a script finds the chart.
    x, y : (float, float)
        Ranges of the axes.
    labels : (str, str)
        Labels of the axes.
    description : str
        What the chart shows, for screen readers.
    percent : (bool, bool)
        Show the numbers of the axis as percentages.
    names : dict of float to str, optional
        Names of places on the x axis, instead of numbers; every k-th one is shown, so
        that they do not overlap.
    """

    def __init__(
        self,
        name: str,
        x: tuple[float, float],
        y: tuple[float, float],
        labels: tuple[str, str],
        description: str,
        percent: tuple[bool, bool] = (True, True),
        names: dict[float, str] | None = None,
    ) -> None:
        self.name, self.x, self.y = name, x, y
        self._labels, self._description, self._percent = labels, description, percent
        self._names = names
        self._parts: list[str] = []

    def scale(self) -> dict[str, Any]:
        """Return the ranges of the axes and the place of the plot, for a script."""
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return {
            "x": list(self.x),
            "y": list(self.y),
            "box": [_LEFT, _TOP, width, height],
        }

    def line(self, x: ArrayLike, y: ArrayLike, kind: str) -> None:
        """Draw a line; ``kind`` is a class of the style sheet."""
        self._parts.append(f'<polyline class="{kind}" points="{self._points(x, y)}"/>')

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str) -> None:
        """Fill the area between two lines."""
        across, down = np.asarray(x), np.asarray(high)
        there = self._points(across, low)
        back = self._points(across[::-1], down[::-1])
        self._parts.append(f'<polygon class="{kind}" points="{there} {back}"/>')

    def dots(self, x: ArrayLike, y: ArrayLike, kind: str) -> None:
        """Draw a dot at each point."""
        for point in self._points(x, y).split():
            across, down = point.split(",")
            self._parts.append(
                f'<circle class="{kind}" cx="{across}" cy="{down}" r="3"/>'
            )

    def bars(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, kind: str) -> None:
        """Draw a vertical bar from low to high at each place."""
        for at, bottom, top in zip(*map(_floats, (x, low, high)), strict=True):
            ends = self._points([at, at], [bottom, top])
            self._parts.append(f'<polyline class="{kind}" points="{ends}"/>')

    def text(self) -> str:
        """Return the chart as SVG."""
        box = f"0 0 {_WIDTH} {_HEIGHT}"
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        parts = [
            f'<svg class="chart" id="chart-{self.name}" viewBox="{box}" role="img">'
            f"<title>{escape(self._description)}</title>"
        ]
        for tick, label in self._across_labels().items():
            at = self._across(tick)
            parts.append(
                f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"/>'
                f'<text class="tick" x="{at}" y="{bottom + 15}" text-anchor="middle">'
                f"{escape(label)}</text>"
            )
        for tick in ticks(*self.y):
            at = self._down(tick)
            label = _number(tick, self._percent[1])
            parts.append(
                f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at}" y2="{at}"/>'
                f'<text class="tick" x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">'
                f"{label}</text>"
            )
        across, down = self._labels
        middle = _TOP + (bottom - _TOP) / 2
        parts.append(
            f'<text class="label" x="{(_LEFT + right) / 2}" y="{_HEIGHT - 6}" '
            f'text-anchor="middle">{escape(across)}</text>'
            f'<text class="label" transform="rotate(-90 12 {middle})" x="12" '
            f'y="{middle}" text-anchor="middle">{escape(down)}</text>'
        )
        parts += self._parts
        parts.append(
            f'<line class="marker-line" hidden="" y1="{_TOP}" y2="{bottom}"/>'
            '<circle class="marker" hidden="" r="6"/></svg>'
        )
        return "".join(parts)

    def _across_labels(self) -> dict[float, str]:
        """Return the labels of the x axis, by their places."""
        if not self._names:
            return {t: _number(t, self._percent[0]) for t in ticks(*self.x)}
        places = sorted(self._names)
        names = [_shortened(self._names[place], _LONGEST) for place in places]
        width = _LETTER * max(map(len, names))
        at = [self._across(place) for place in places]
        apart = min((b - a for a, b in pairwise(at)), default=width)
        every = max(ceil(width / max(apart, 1e-3)), 1)
        return {
            places[k]: names[k]
            for k in range(0, len(places), every)
            if at[k] + 0.5 * width <= _WIDTH  # the last one may not fit
        }

    def _across(self, value: float) -> float:
        low, high = self.x
        share = (value - low) / (high - low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def _down(self, value: float) -> float:
        low, high = self.y
        share = (value - low) / (high - low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def _points(self, x: ArrayLike, y: ArrayLike) -> str:
        across = np.clip(np.asarray(x, np.float64), *self.x)
        down = np.clip(np.asarray(y, np.float64), *self.y)
        known = ~(np.isnan(across) | np.isnan(down))
        pairs = zip(across[known].tolist(), down[known].tolist(), strict=True)
        return " ".join(f"{self._across(a)},{self._down(b)}" for a, b in pairs)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers in a range."""
    raw = (high - low) / _MAX_TICKS
    unit = 10.0 ** np.floor(np.log10(raw))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= raw)
    first = np.ceil(low / step - 1e-9)
    return [
        float(k * step) + 0.0
        for k in np.arange(first, np.floor(high / step + 1e-9) + 1)
    ]


def forest(
    names: Sequence[str],
    values: Iterable[tuple[float, float, float]],
    description: str,
    reference: float,
) -> str:
    """Return a chart of estimates with intervals, one line for each name."""
    rows = [tuple(value) for value in values]
    known = [x for row in rows for x in row if np.isfinite(x)] + [reference]
    low, high = min(known), max(known)
    pad = 0.05 * ((high - low) or 1.0)
    low, high = low - pad, high + pad
    left, width, step = 150, 400, 22
    height = step * len(rows) + 34

    def across(value: float) -> float:
        return round(left + (value - low) / (high - low) * (width - left - 10), 1)

    parts = [
        f'<svg class="chart forest" viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(description)}</title>"
    ]
    for tick in ticks(low, high):
        at = across(tick)
        parts.append(
            f'<line class="grid" x1="{at}" x2="{at}" y1="4" y2="{height - 24}"/>'
            f'<text class="tick" x="{at}" y="{height - 8}" text-anchor="middle">'
            f"{tick:.4g}</text>"
        )
    at = across(reference)
    parts.append(
        f'<line class="chance" x1="{at}" x2="{at}" y1="4" y2="{height - 24}"/>'
    )
    for place, (name, (value, start, end)) in enumerate(zip(names, rows, strict=True)):
        y = step * place + 18
        short = _shortened(name, 22)
        parts.append(
            f'<text class="tick" x="{left - 8}" y="{y + 4}" text-anchor="end">'
            f"{escape(short)}</text>"
        )
        if np.isfinite(value):
            parts.append(
                f'<line class="error" x1="{across(start)}" x2="{across(end)}" y1="{y}" '
                f'y2="{y}"/><circle class="dot" cx="{across(value)}" cy="{y}" r="4"/>'
            )
    return "".join(parts) + "</svg>"


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _floats(values: ArrayLike) -> list[float]:
    found: list[float] = np.asarray(values, np.float64).tolist()
    return found


def _number(value: float, percent: bool) -> str:
    return f"{100.0 * value:.4g} %" if percent else f"{value:.4g}"
