"""Charts as SVG."""

import re
from itertools import pairwise

import pytest

from aucmax.report.svg import Chart, forest, ticks


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(0.0, 1.0, 0.0, 1.0), (-3.2, 1.1, -3.0, 1.0), (0.84, 0.87, 0.84, 0.87)],
)
def test_ticks_are_round_and_in_range(low, high, first, last):
    found = ticks(low, high)
    assert found[0] == pytest.approx(first)
    assert found[-1] == pytest.approx(last)
    assert 3 <= len(found) <= 8


def test_points_are_where_the_scale_says():
    chart = Chart("a", (0.0, 2.0), (0.0, 4.0), ("x", "y"), "test")
    left, top, width, height = chart.scale()["box"]
    chart.line([0.0, 1.0, 2.0], [0.0, 2.0, 9.0], "m0")
    middle = f"{left + width / 2:.1f},{top + height / 2:.1f}"
    corner = f"{left + width:.1f},{top:.1f}"  # 9 is cut to the range
    assert f"{middle} {corner}" in chart.text()


def test_names_are_escaped_and_shortened():
    text = forest(["<b>" + 40 * "x"], [(0.7, 0.6, 0.8)], "a & b", 0.5)
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "…" in text
    assert "a &amp; b" in text


@pytest.mark.parametrize("count", [1, 2, 4, 8, 29, 30, 36, 200])
@pytest.mark.parametrize("name", ["2017-02-13", "2024", "W7", "in the first weeks"])
def test_names_below_the_axis_do_not_overlap(count, name):
    chart = Chart(
        "a",
        (0.5, count + 0.5),
        (0.0, 1.0),
        ("x", "y"),
        "test",
        names={place + 1.0: name for place in range(count)},
    )
    shown = re.findall(
        r'x="([\d.]+)" y="273" text-anchor="middle">([^<]+)', chart.text()
    )
    half = 3.5 * len(shown[0][1])  # of 12 pixels: digits have 7 in a wide font
    at = [float(x) for x, _ in shown]
    assert at[0] - half >= 0.0
    assert at[-1] + half <= 400.0
    assert all(b - a >= 2 * half for a, b in pairwise(at))
    room = 326.0 / (2 * half)
    assert len(shown) >= min(count, max(0.5 * room, 1))
    assert all(text == name or text.endswith("…") for _, text in shown)
