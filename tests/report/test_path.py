import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")

from aucmax import LeastSquaresAUCCV
from aucmax.report.path import path_figure
from aucmax.report.roc import save_figure
from helpers.data import gaussian


def test_path_is_plotted(tmp_path):
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
    (band,) = area.collections
    low = (model.path_["auc"] - model.path_["error"]).min()
    assert band.get_paths()[0].vertices[:, 1].min() == low
    told = [text.get_text() for text in area.get_legend().get_texts()]
    assert told == ["one fold", "mean of 5 folds", "± one standard error"]
    scaled = model.coef_path_ * model.scale_
    largest = np.abs(scaled).max(axis=0).argmax()
    legend = [text.get_text() for text in weights.get_legend().get_texts()]
    assert legend[0] == f"feature {largest}"
    assert len(legend) == 8
    paths = [line.get_ydata() for line in weights.get_lines()]
    for path in scaled.T:
        assert any(np.array_equal(y, path) for y in paths)
    save_figure(figure, tmp_path / "path.png")
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_few_features_without_names():
    model = LeastSquaresAUCCV(5).fit(*gaussian(100, 2))

    def legend(figure):
        return {text.get_text() for text in figure.axes[1].get_legend().get_texts()}

    assert legend(path_figure(model)) == {"0", "1"}
    names = ["job=student", "a name that is " + "very " * 9 + "long"]
    short = "a name that is very very ve…"
    assert legend(path_figure(model, names=names)) == {"job=student", short}


def test_units_do_not_matter():
    X, y = gaussian(200, 3)
    unit = np.array([1e-3, 1.0, 1e5])

    def largest(X):
        figure = path_figure(LeastSquaresAUCCV(5).fit(X, y))
        lines = figure.axes[1].get_lines()
        return {line.get_label(): line.get_ydata()[-1] for line in lines}

    one, other = largest(X), largest(X * unit)
    for feature in "012":
        assert one[feature] == pytest.approx(other[feature], rel=1e-6)
