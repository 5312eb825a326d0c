import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")

from aucmax import LeastSquaresAUCCV
from aucmax.report.path import path_figure
from aucmax.report.roc import save_figure
from data import gaussian


def test_the_path_is_what_is_drawn(tmp_path):
    X, y = gaussian(300, 10)
    frame = pd.DataFrame(X, columns=[f"feature {k}" for k in range(10)])
    model = LeastSquaresAUCCV(20).fit(frame, y)
    figure = path_figure(model, "title")
    area, weights = figure.axes
    drawn = [line.get_ydata() for line in area.get_lines()]
    assert any(np.array_equal(y, model.path_["auc"]) for y in drawn)
    for fold in model.scores_.T:
        assert any(np.array_equal(y, fold) for y in drawn)
    assert f"{model.path_['auc'].max():.4f}" in area.get_title()
    largest = np.abs(model.coef_path_).max(axis=0).argmax()
    legend = [text.get_text() for text in weights.get_legend().get_texts()]
    assert legend[0] == f"feature {largest}"
    assert len(legend) == 8
    paths = [line.get_ydata() for line in weights.get_lines()]
    for path in model.coef_path_.T:
        assert any(np.array_equal(y, path) for y in paths)
    save_figure(figure, tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_few_features_without_names():
    figure = path_figure(LeastSquaresAUCCV(5).fit(*gaussian(100, 2)))
    legend = figure.axes[1].get_legend().get_texts()
    assert {text.get_text() for text in legend} == {"0", "1"}
