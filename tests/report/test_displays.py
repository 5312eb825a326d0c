"""Displays: what is drawn, into which axes, and from which inputs."""

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

matplotlib.use("agg")
import matplotlib.pyplot as plt

from aucmax import AUCClassifier, metrics, report

CURVES = [
    report.ROCDisplay,
    report.PrecisionRecallDisplay,
    report.GainsDisplay,
    report.CalibrationDisplay,
    report.DecisionCurveDisplay,
    report.ScoresDisplay,
]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(size=400) > 1.0
    return X, np.where(y, "yes", "no"), 1.0 / (1.0 + np.exp(-X[:, 0]))


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def lines(display):
    """Return the lines with a name in the legend."""
    return [a for a in display.ax_.get_lines() if not a.get_label().startswith("_")]


@pytest.mark.parametrize("kind", CURVES)
def test_given_axes_and_several_models(kind, rows):
    _, y, score = rows
    _, ax = plt.subplots()
    display = kind.from_predictions(y, {"a": score, "b $1$": 1.0 - score}, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(text.startswith("a") for text in shown)
    assert any(text.startswith("b $1$") for text in shown)  # not a formula
    assert ax.get_xlabel()
    colours = {line.get_color() for line in lines(display)[:2]}
    assert len(colours) == 2
    ax.figure.canvas.draw()


@pytest.mark.parametrize("kind", CURVES)
def test_an_estimator_gives_the_plot_of_its_scores(kind, rows):
    X, y, _ = rows
    model = LogisticRegression().fit(X, y)
    score = model.decision_function(X)
    if kind.probabilities:
        score = model.predict_proba(X)[:, 1]
    from_estimator = kind.from_estimator(model, X, y)
    from_scores = kind.from_predictions(y, score, name="LogisticRegression")
    for one, other in zip(lines(from_estimator), lines(from_scores), strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
        assert one.get_label() == other.get_label()


def test_the_roc_curve_is_the_measures(rows):
    _, y, score = rows
    display = report.ROCDisplay.from_predictions(y, score, fpr=[0.1], band=None)
    curve = metrics.roc_curve(y, score)
    drawn = lines(display)[0].get_xydata()
    np.testing.assert_array_equal(drawn, np.column_stack([curve.fpr, curve.tpr]))
    point = metrics.operating_point(y, score, fpr=0.1)
    marked = display.ax_.get_lines()[1].get_xydata()
    np.testing.assert_array_equal(marked, [[point.fpr, point.tpr]])
    assert f"{metrics.auc(y, score):.2f}"[:4] in lines(display)[0].get_label()


def test_long_curves_are_thinned_and_keep_their_ends():
    rng = np.random.default_rng(1)
    y = rng.random(50_000) < 0.2
    display = report.ROCDisplay.from_predictions(y, y + rng.normal(size=y.size))
    drawn = lines(display)[0].get_xydata()
    assert len(drawn) <= 2000
    assert drawn[0].tolist() == [0.0, 0.0]
    assert drawn[-1].tolist() == [1.0, 1.0]


def test_groups_and_time(rows):
    _, y, score = rows
    group = np.arange(y.size) % 3
    display = report.GroupsDisplay.from_predictions(y, score, group=group)
    found = metrics.auc_by_group(y, score, group).groups
    expected = [one.auc.value for one in found]
    np.testing.assert_array_equal(lines(display)[0].get_ydata(), expected)
    time = np.datetime64("2024-01-01") + np.arange(y.size) // 20
    display = report.GroupsDisplay.from_predictions(y, score, time=time)
    names = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert names == sorted(names)
    with pytest.raises(ValueError, match="one of group and time"):
        report.GroupsDisplay.from_predictions(y, score)


def test_importances(rows):
    X, y, _ = rows
    model = AUCClassifier(random_state=0).fit(X, y)
    display = report.ImportanceDisplay.from_estimator(model, top=2)
    assert len(display.ax_.get_yticklabels()) == 2
    with pytest.raises(TypeError, match="use from_estimator"):
        report.ImportanceDisplay.from_predictions(y, X[:, 0])


def test_an_unknown_display_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'PieDisplay'"):
        report.PieDisplay  # noqa: B018
