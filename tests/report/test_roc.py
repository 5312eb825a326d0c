import sys
import warnings

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")

from aucmax.metrics import auc_interval, roc_curve
from aucmax.report.roc import Curve, roc_figure, save_figure


def curve(name, signal):
    rng = np.random.default_rng(0)
    y = rng.random(500) < 0.1
    score = rng.standard_normal(500) + signal * y
    found = auc_interval(y, score)
    fpr, tpr, _ = roc_curve(y, score)
    return Curve(name, fpr, tpr, found.value, found.low, found.high)


def test_the_legend_is_sorted_by_area_and_all_curves_are_drawn():
    curves = [curve("weak", 0.5), curve("strong", 3.0), curve("middling", 1.5)]
    figure = roc_figure(curves, "title")
    legend = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    order = [next(n for n in ("weak", "middling", "strong") if n in t) for t in legend]
    assert order == ["strong", "middling", "weak"]
    assert f"{curves[1].auc:.3f} (" in legend[0]  # a standard error of about 0.01
    drawn = [line.get_xdata() for line in figure.axes[0].get_lines()]
    for c in curves:
        assert any(len(x) == len(c.fpr) and np.allclose(x, c.fpr) for x in drawn)


def test_figure_is_written_without_pyplot(tmp_path):
    before = "matplotlib.pyplot" in sys.modules
    path = tmp_path / "roc.png"
    save_figure(roc_figure([curve("one", 1.0)], "title"), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        save_figure(roc_figure([curve("one", 1.0)], "title"), tmp_path / "no" / "a.png")


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_titles_may_contain_any_characters(tmp_path, ending):
    title = "$a_{ $\\frac 销售 \udcff {%} " + "x" * 500
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = roc_figure([curve("$x^ 模型", 1.0)], title)
        save_figure(figure, tmp_path / f"roc.{ending}")
    assert figure.get_suptitle().startswith("$a_{ $")
