"""Labels of every form, and errors that say what, where and what to do."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from aucmax import metrics
from aucmax.metrics import auc, auc_interval, auc_test, roc_curve
from aucmax.metrics._ranking import as_scores

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


N = 60
RNG = np.random.default_rng(0)
LABELS = np.arange(N) % 2
ARRAYS = {
    "y": LABELS,
    "score": LABELS + RNG.normal(size=N),
    "probability": RNG.uniform(0.01, 0.99, N),
    "sample_weight": RNG.integers(1, 4, N).astype(float),
    "groups": np.arange(N) // 2,
    "group": np.arange(N) // 2 % 2,
    "folds": np.arange(N) // 2 % 3,
    "reference": RNG.normal(size=N),
    "current": RNG.normal(size=N),
}
ARRAYS |= {f"score_{x}": RNG.normal(size=N) for x in "ab"}
ARRAYS |= {f"y_{x}": LABELS for x in "ab"}
ONE_OF = {
    "operating_point": {"fpr": 0.2},
    "threshold_interval": {"fpr": 0.2},
    "multiclass_auc": {"score": RNG.random((N, 2))},
    "expected_auc": {"reference": None},
}
OTHERS = {"fpr": 0.2, "tpr": 0.8, "k": 0.2, "threshold": 0.5}


def measures():
    """Return each measure that takes rows, with the arguments that it needs."""
    parameters = []
    for name in metrics.__all__:
        measure = getattr(metrics, name)
        if not inspect.isfunction(measure):
            continue
        given = ONE_OF.get(name, {})
        known = inspect.signature(measure).parameters
        needed = [k for k, v in known.items() if v.default is v.empty]
        arguments = {**ARRAYS, **OTHERS, **given}
        found = {k: arguments[k] for k in {*needed, *given} if k in arguments}
        if any(isinstance(value, np.ndarray) for value in found.values()):
            optional = {"sample_weight", "groups"} & {*known}
            parameters.append(pytest.param(measure, found, optional, id=name))
    return parameters


def wrong_ways(found, optional):
    """Yield the name of each array, and the arguments of a call."""
    for name in {*found, *optional}:
        if isinstance(found.get(name, ARRAYS.get(name)), np.ndarray):
            yield name, {name: ARRAYS[name], **found}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("measure", "found", "optional"), measures())
def test_every_measure_refuses_masked_values(measure, found, optional):
    for name, arguments in wrong_ways(found, optional):
        values = arguments[name]
        expected = repr(measure(**arguments))
        whole = {**arguments, name: np.ma.array(values)}
        assert repr(measure(**whole)) == expected
        masked = np.ma.array(values, mask=False)
        masked[7] = np.ma.masked
        with pytest.raises(ValueError, match=r"is a masked array .* row 7"):
            measure(**{**arguments, name: masked})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("measure", "found", "optional"), measures())
@pytest.mark.parametrize("dtype", [str, bytes, complex, object])
def test_every_measure_refuses_what_is_no_real_number(measure, found, optional, dtype):
    for name, arguments in wrong_ways(found, optional):
        if name.startswith(("y", "group", "folds")):  # labels may be of any type
            continue
        wrong = arguments[name].astype(str if dtype is object else dtype).astype(dtype)
        with pytest.raises(ValueError, match="must be a real number"):
            measure(**{**arguments, name: wrong})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("measure", "found", "optional"), measures())
def test_rows_of_unknown_groups_are_not_one_group(measure, found, optional):
    if "groups" in optional:
        groups = np.where(np.arange(N) == 7, np.nan, ARRAYS["groups"])
        with pytest.raises(ValueError, match=r"groups is nan at row 7.*its own"):
            measure(**found, groups=groups)
        if "sample_weight" in optional:  # rows of weight zero do not count
            weight = (np.arange(N) != 7).astype(float)
            measure(**found, groups=groups, sample_weight=weight)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("measure", "found", "optional"), measures())
@pytest.mark.parametrize("half_life", [1, 10])
def test_every_measure_takes_weights_that_decay_in_time(
    measure, found, optional, half_life
):
    if "sample_weight" not in optional:
        return
    longer = {
        name: np.concatenate([value] * 15) if isinstance(value, np.ndarray) else value
        for name, value in found.items()
    }
    for name in ("score", "probability"):  # distinct values
        if name in longer:
            noise = 1e-4 * RNG.random(longer[name].shape)
            longer[name] = longer[name] + noise
    result = measure(**longer, sample_weight=0.5 ** (np.arange(15 * N) / half_life))
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, float | np.ndarray):
            assert not np.isnan(part).any()


@pytest.mark.parametrize("scale", [2.0**515, 2.0**-540, 2.0**990, 2.0**-1062])
def test_the_scale_of_weights_does_not_change_a_calibration_curve(scale):
    y, p, w = (ARRAYS[name] for name in ("y", "probability", "sample_weight"))
    found = metrics.calibration_curve(y, p, sample_weight=scale * w)
    expected = metrics.calibration_curve(y, p, sample_weight=w)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-3)
    line = metrics.calibration_line(y, p, sample_weight=scale * w)
    expected = metrics.calibration_line(y, p, sample_weight=w)
    np.testing.assert_allclose(line, expected, rtol=1e-3)


@pytest.mark.parametrize("more", [{}, {"max_fpr": 0.3}, {"groups": ARRAYS["groups"]}])
def test_the_difference_of_a_score_from_itself_is_known(more):
    y, score = ARRAYS["y"], ARRAYS["score"]
    found = auc_test(y, score, score.tolist(), **more)
    assert found == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    assert auc_test(y, score, score, margin=0.01, **more).pvalue == 0.0
    assert auc_test(y, score, score, margin=0.0, **more).pvalue == 1.0
