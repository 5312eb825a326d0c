"""Labels of every form, and errors that say what, where and what to do."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from aucmax.metrics import auc, auc_interval, auc_test, roc_curve
from aucmax.metrics.inputs import as_scores

SCORE = [0.1, 0.4, 0.35, 0.8]


@pytest.mark.parametrize(
    "y",
    [
        [0, 0, 1, 1],
        [-1, -1, 1, 1],
        [1, 1, 2, 2],
        [0.0, 0.0, 1.0, 1.0],
        [False, False, True, True],
        ["no", "no", "yes", "yes"],
        np.array([3, 3, 200], dtype=np.uint8)[[0, 1, 2, 2]],
        np.array(["no", "no", "yes", "yes"], dtype=object),
        np.array([0, 0, 1, 1], dtype=object),
        pd.Series([0, 0, 1, 1], index=[7, 7, 8, 9]),
        pd.Series(["a", "a", "b", "b"]),
        pd.Series(["a", "a", "b", "b"], dtype="category"),
        pd.Series([0, 0, 1, 1], dtype="Int64"),
    ],
)
def test_the_larger_label_is_positive(y):
    assert auc(y, SCORE) == 0.75
    first = np.asarray(y)[0]
    assert auc(y, SCORE, pos_label=first) == 0.25
    assert auc(np.asarray(y)[::-1], SCORE[::-1]) == 0.75


def test_a_label_of_another_type_may_be_positive():
    assert auc([0, 0, 1, 1], SCORE, pos_label=True) == 0.75
    assert auc([False, False, True, True], SCORE, pos_label=0) == 0.25


@pytest.mark.parametrize(
    ("y", "score", "more", "message"),
    [
        ([0, 1, 1], [1, np.nan, 2], {}, r"score is NaN at row 1, .* -inf"),
        ([0, 1, 1], [1, 2], {}, r"score has 2 rows, but y has 3"),
        ([0, 1, 0, 2], [1, 2, 3, 4], {}, r"two classes: 0 and 1, but at row 3 2; .*=="),
        (["a", "c", "b"], [1, 2, 3], {}, r"'a' and 'c', but at row 2 'b'"),
        ([0.0, np.nan, 1.0], [1, 2, 3], {}, r"y is nan at row 1: drop"),
        ([np.nan, 0.0, 1.0], [1, 2, 3], {}, r"y is nan at row 0"),
        ([0.0, 1.0, np.nan], [1, 2, 3], {}, r"y is nan at row 2"),
        (["a", None], [1, 2], {}, r"cannot be compared .* drop"),
        ([], [], {}, r"y is empty"),
        ([[0], [1]], [1, 2], {}, r"y has shape \(2, 1\), .* np\.ravel\(y\)"),
        ([0, 1], [[1], [2]], {}, r"score has shape \(2, 1\), .* np\.ravel\(score\)"),
        ([0, 1], [[1, 2], [3, 4]], {}, r"shape \(2, 2\), .* score\[:, 1\]"),
        ([0, 1], ["1", "high"], {}, r"score is '1' at row 0: .* real number"),
        ([0, 1], [1, None], {}, r"score is None at row 1"),
        ([0, 1], [1j, 2.0], {}, r"score is 1j at row 0"),
        ([0, 1], [1, 2], {"pos_label": 3}, r"pos_label=3 does not occur .* 0 and 1"),
        ([0, 1], [1, 2], {"pos_label": "1"}, r"pos_label='1' does not occur"),
        ([0, 1], [1, 2], {"sample_weight": [1, -2]}, r"weight is -2\.0 at row 1"),
        ([0, 1], [1, 2], {"sample_weight": [1, np.nan]}, r"weight is nan at row 1"),
        ([0, 1], [1, 2], {"sample_weight": [np.inf, 1]}, r"weight is inf at row 0"),
        ([0, 1], [1, 2], {"sample_weight": [1, 1, 1]}, r"sample_weight has 3 rows"),
        ([0, 1], [1, 2], {"sample_weight": 3}, r"sample_weight has shape \(\)"),
    ],
)
@pytest.mark.parametrize("measure", [auc, roc_curve])
def test_errors_say_what_and_where(measure, y, score, more, message):
    with pytest.raises(ValueError, match=message):
        measure(y, score, **more)


ONE_CLASS = [
    ([1, 1, 1], [1, 2, 3], {}, r"one class only: all 3 rows are 1; .* both"),
    (["a", "a"], [1, 2], {}, r"one class only: all 2 rows are 'a'"),
    ([0, 1, 1], [1, 2, 3], {"sample_weight": [1, 0, 0]}, r"all 2 positive rows"),
    ([0, 1, 1], [1, 2, 3], {"sample_weight": [0, 1, 1]}, r"all 1 negative rows"),
]


@pytest.mark.parametrize(("y", "score", "more", "message"), ONE_CLASS)
def test_an_area_of_one_class_is_nan_with_a_warning(y, score, more, message):
    for measure in (auc, auc_interval):
        with pytest.warns(UndefinedMetricWarning, match=message):
            found = measure(y, score, **more)
        assert np.isnan(found).all()
    with pytest.raises(ValueError, match=message):  # there is no curve of NaN
        roc_curve(y, score, **more)


def test_errors_name_the_score_that_is_wrong():
    with pytest.raises(ValueError, match="score_b is NaN at row 2"):
        auc_test([0, 1, 1], [1, 2, 3], [1, 2, np.nan])
    with pytest.raises(ValueError, match="score_a has 2 rows, but y has 3"):
        auc_test([0, 1, 1], [1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="score is NaN at row 0"):
        auc_interval([0, 1], [np.nan, 1])


def test_missing_values_of_pandas():
    y = pd.Series([0, 1, None, 1], dtype="Int64")
    with pytest.raises(ValueError, match="y "):
        auc(y, SCORE)
    with pytest.raises(ValueError, match=r"score is .* at row 2"):
        auc([0, 0, 1, 1], pd.Series([0.1, 0.4, None, 0.8], dtype="Float64"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_fit_for_a_kernel_are_not_copied(dtype):
    score = np.arange(5, dtype=dtype)
    assert np.shares_memory(as_scores(score, 5), score)


def test_importing_the_measures_leaves_scikit_learn_out():
    code = "import sys, aucmax.metrics; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
