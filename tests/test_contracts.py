"""What every estimator must satisfy; being in the registry is all it takes to be here.

Tests of the first kind run everything that is registered, and variants of it; those on
streams run what has a ``partial_fit``. States are compared field by field, whatever the
fields are.
"""

import ast
import copy
import inspect
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from functools import partial
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import typeof
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from scipy import sparse
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import aucmax
from aucmax import (
    ASAM,
    BAM,
    BAMCV,
    CBR,
    FSAUC,
    MBA,
    OAM,
    OPAUC,
    PSAM,
    SAM,
    SOLAM,
    SPAM,
    SPDAM,
    SVRGAUC,
    AUCClassifier,
    AUCStream,
    Chain,
    KernelAUCCV,
    KernelBAM,
    KMeansNystroem,
    LeastSquaresAUC,
    LeastSquaresAUCCV,
    Projection,
    RandomFourier,
    UniExp,
)
from aucmax.base.ranker import LinearRanker
from aucmax.blend.trees import BoostedTrees, RandomizedTrees
from aucmax.online.base import BatchAUC, OnlineAUC, visits
from aucmax.online.divergence import WIDEST
from aucmax.storage.state_arrays import arrays
from helpers.data import (
    closed_form,
    constant,
    gaussian,
    mixed,
    rare,
    scaled,
    scattered,
    shared,
    wide,
)
from helpers.data import (
    pairwise as pairwise_loss,
)
from helpers.states import dump

# As it is, BAMCV fits more than a hundred times; a shorter path is the same code.
SHORTER = {
    "BAMCV": {"l2s": 4, "cv": 2},
    "LeastSquaresAUCCV": {"cv": 3},
    "KernelAUCCV": {"n_components": 20, "widths": [1.0], "cv": 2},
    "AUCClassifier": {
        "members": [BAM(), RandomizedTrees(5), BoostedTrees(5)],
        "cv": 2,
    },
}
PLAIN = [
    Chain(KMeansNystroem(20), SPAM(), first_rows=40)
    if name == "Chain"
    else getattr(aucmax, name)(**SHORTER.get(name, {}))
    for name in aucmax.ESTIMATORS
]
VARIANTS = [
    *PLAIN,
    SPAM(l1=0.01),
    SPAM(eta0=0.1, step="explicit", precondition=False, average=False),
    SPAM(schedule="inv"),
    SPAM(schedule="constant", eta0=0.1),
    SOLAM(norm="l1", radius=1),
    SOLAM(l2=1e-3, radius=None),
    SOLAM(radius=0.05),
    OAM(update="gra", policy="reservoir", buffer_size=20),
    OAM(0.01, policy="reservoir", schedule="constant", precondition=False),
    CBR(policy="reservoir", precondition=False),
    CBR(covariance="diag"),
    MBA(l1=0.01),
    LeastSquaresAUC(l1=0.01),
    LeastSquaresAUC(solver="cg", tol=1e-12),
    LeastSquaresAUCCV([1.0, 1e-2], cv=3),
    BAM(0.01, loss="logistic"),
    BAMCV([1.0, 1e-2], cv=3, loss=["exponential"]),
    SVRGAUC(l1=0.01),
    PSAM(l2=0.1, rskip=3, askip=5, precondition=False),
    SPDAM(batch_size=1.0),
    OPAUC(eta0=0.1, step="explicit", precondition=False, average=False),
    OPAUC(rank=20),
    OPAUC(rank=40, step="explicit", eta0=0.1, precondition=False, average=False),
    FSAUC(radius=0.5),
    FSAUC(l2=1e-3, radius=None, n_expected=100),
    FSAUC(None, eta0=0.1, step="explicit", precondition=False),
    Chain(KMeansNystroem(20, linear=True), BAM()),
    Chain(RandomFourier(20, kind="sincos"), OAM(), first_rows=50),
    Chain(Projection(3), LeastSquaresAUC(), first_rows=30),
    AUCStream(half_life=400.0),
]
LINEAR = [e for e in VARIANTS if isinstance(e, LinearRanker)]
ONLINE = [estimator for estimator in VARIANTS if hasattr(estimator, "partial_fit")]
# Learners that sum moments in blocks: any chunking gives the same up to rounding, and a
# row of weight k is the row k times over.
EXACT = {"LeastSquaresAUC"}
# Learners that keep something for every pair of features, so that there is a limit.
NARROW = {"OPAUC", "AdaOAM", "CBR", "MBA", "LeastSquaresAUC", "LeastSquaresAUCCV"}
# Solvers that stop at a tolerance: the minimum is the same, what is left of the way to
# it is not.
ITERATIVE = {"SVRGAUC", "SPDAM"}
# Members that minimise the square loss, and the settings with which they get there.
SQUARE_LOSS = {
    "SPAM": {"max_iter": 3000},
    "SOLAM": {"radius": None, "max_iter": 3000},
    "LeastSquaresAUC": {},
    "SVRGAUC": {"max_iter": 400, "tol": 1e-10},
    "SPDAM": {"max_iter": 400, "tol": 1e-10},
    "OPAUC": {"max_iter": 1000},
    "AdaOAM": {"max_iter": 1000},
    "FSAUC": {"max_iter": 3000},
}
METHODS = ["fit", "partial_fit"]


@pytest.fixture(autouse=True)
def shorter_within(monkeypatch):
    """KernelAUCCV deals its folds three times, and has a BAMCV inside.

    As they are in tests/batch/test_kernel_cv.py.
    """
    monkeypatch.setattr("aucmax.kernel.kernel_cv._REPEATS", 1)
    monkeypatch.setattr("aucmax.kernel.kernel_cv.BAMCV", partial(BAMCV, l2s=4))


def name(value):
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r"\s+", " ", text)


def ways(estimators):
    """Return the estimators, each with every method that it can be trained by."""
    return [(e, method) for e in estimators for method in METHODS if hasattr(e, method)]


def one_of_each_fit():
    """Return an estimator for each ``fit`` that is written down somewhere.

    For what happens before an algorithm gets to see the data: checks of the input, and
    what labels mean. Estimators that inherit ``fit`` could not get it wrong.
    """
    return list({type(e).fit: e for e in reversed(PLAIN)}.values())[::-1]


def of(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=name)


def by(estimators):
    return pytest.mark.parametrize(("estimator", "method"), ways(estimators), ids=name)


# Every contract that an algorithm could break runs for all of them: as they are, or in
# every variant if it is about arithmetic.
every, every_way = of(VARIANTS), by(VARIANTS)
linear = of(LINEAR)
plain_linear = of([estimator for estimator in PLAIN if estimator in LINEAR])
plain, plain_way = of(PLAIN), by(PLAIN)
online = of(ONLINE)
each_fit, each_fit_way = of(one_of_each_fit()), by(one_of_each_fit())
strict = pytest.mark.filterwarnings("error")
patient = settings(deadline=None, max_examples=8, derandomize=True)


def seeded(estimator, **parameters):
    """Return a copy with these parameters, as far as it has them."""
    wanted = {"random_state": 0, **parameters}
    wanted = {
        key: wanted[key.rpartition("__")[2]]
        for key in estimator.get_params()
        if key.rpartition("__")[2] in wanted
    }
    return clone(estimator).set_params(**wanted)


def trained(estimator, X, y, method="fit", **parameters):
    """Return a copy that was trained by this method."""
    return getattr(seeded(estimator, **parameters), method)(X, y)


def everything(model):
    """Return all that training has left behind, by name."""
    if not isinstance(model, LinearRanker):
        return {"n_iter": np.array(model.n_iter_), **dump(model)[1]}
    state = arrays(model.state_) if hasattr(model, "state_") else {}
    found = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "n_iter": getattr(model, "n_iter_", 0),
        **state,
    }
    return {key: np.array(value, dtype=float) for key, value in found.items()}


def assert_same_bits(model, expected):
    left, right = everything(model), everything(expected)
    assert left.keys() == right.keys()
    for key in left:
        assert_array_equal(left[key], right[key], err_msg=key)


def slots(key, value):
    """Return what has units of its own: each of some numbers, each row of a table."""
    numbers = key in ("z", "n", "weight", "rows") or np.ndim(value) != 1
    return np.atleast_1d(value) if numbers else np.atleast_2d(value)


def assert_close(model, expected, rtol=1e-10):
    """Compare states; what has units of its own on its own.

    A slot of a table is right if its error is small against its largest number: a small
    one that is the difference of large ones has lost its last digits rightfully.
    """
    left, right = everything(model), everything(expected)
    assert left.keys() == right.keys()
    for key in left:
        for a, b in zip(slots(key, left[key]), slots(key, right[key]), strict=True):
            atol = rtol * np.abs(b).max(initial=1e-6)
            assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=key)


def assert_same(model, expected):
    """Compare what chunking, and only that, may have changed."""
    if type(getattr(model, "learner", model)).__name__ in EXACT:
        assert_close(model, expected)
    else:
        assert_same_bits(model, expected)


def area(model, X, y):
    return roc_auc_score(y, model.decision_function(X))


def assert_finite(model):
    for key, value in everything(model).items():
        assert np.isfinite(value).all(), f"{key}: {value}"


# 1. scikit-learn


def expected_failures(estimator):
    kind = type(estimator).__name__
    if kind in ("Chain", "KernelAUCCV"):
        why = "landmarks are those of the rows, whatever they weigh"
    elif kind == "AUCClassifier":
        why = "folds are dealt by rows: other folds when a row is there twice"
    elif kind == "MBA":
        why = "draws pairs at random: other pairs when the rows are in another order"
    elif kind in ITERATIVE:
        why = "solved up to tol, by other random rows; only the minimum is the same"
    elif not hasattr(estimator, "partial_fit") or kind in EXACT:
        if not sklearn.__version__.startswith("1.6."):
            return {}
        why = "scikit-learn 1.6: the check names classes by the first row, and shuffles"
    else:
        why = "online: one step for k repeated rows' k; only the minimum is the same"
    return {
        "check_sample_weight_equivalence_on_dense_data": why,
        "check_sample_weight_equivalence_on_sparse_data": why,
    }


@pytest.mark.smoke
@parametrize_with_checks(
    [seeded(estimator) for estimator in PLAIN],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@linear
def test_linear_models_say_their_weights(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    assert model.coef_.shape == (1, 6)
    assert model.intercept_.shape == (1,)
    assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_)


@every
def test_attributes(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    assert model.n_features_in_ == 6
    assert isinstance(model.n_iter_, int)
    assert 1 <= model.n_iter_ <= model.get_params().get("max_iter", np.inf)
    assert_array_equal(model.classes_, [0, 1])
    assert model.score(X, y) == pytest.approx(area(model, X, y), abs=1e-12)


@of([e for e in VARIANTS if not hasattr(e, "predict_proba")])  # there, at even odds
def test_zero_is_midway_between_the_mean_scores(estimator):
    X, y = scaled(150)
    score = trained(estimator, X, y).decision_function(X)
    middle = (score[y == 1].mean() + score[y == 0].mean()) / 2
    rounding = 1e-9 if isinstance(estimator, LinearRanker) else 1e-5  # float32
    assert abs(middle) < rounding * np.abs(score).max()


@pytest.mark.parametrize(
    "labels", [(0, 1), (-1, 1), (2.0, 7.0), ("no", "yes"), (False, True)], ids=str
)
@each_fit_way
def test_labels_of_any_kind(estimator, method, labels):
    X, y = gaussian(60)
    expected = trained(estimator, X, y, method)
    named = np.array(labels)[y]
    forms = [named, named.tolist(), pd.Series(named)]
    if isinstance(labels[0], str):
        forms.append(named.astype(object))
    for form in forms:
        model = trained(estimator, X, form, method)
        assert_same_bits(model, expected)
        assert_array_equal(model.predict(X), np.array(labels)[expected.predict(X)])


@plain
def test_pipeline_and_grid_search(estimator):
    X, y = scaled(200)
    pipeline = make_pipeline(StandardScaler(), seeded(estimator, max_iter=2))
    name = type(estimator).__name__.lower()
    tuned, values = next(
        (key, values)
        for key, values in {
            "max_iter": [1, 3],
            "l2": [1e-4, 1e-2],
            "cv": [2, 3],
            "learner__max_iter": [1, 3],
            "tolerance": [0.0, 0.01],
        }.items()
        if key in estimator.get_params()
    )
    grid = {f"{name}__{tuned}": values}
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=3)
    search.fit(X, y)
    assert_allclose(search.score(X, y), area(search.best_estimator_, X, y))
    assert search.best_score_ > 0.7


@each_fit
def test_calibration(estimator):
    X, y = gaussian(300)
    model = CalibratedClassifierCV(seeded(estimator), cv=3).fit(X, y)
    chance = model.predict_proba(X)[:, 1]
    assert_allclose(chance.mean(), y.mean(), atol=0.05)
    assert roc_auc_score(y, chance) > 0.7


@each_fit
def test_tuned_threshold(estimator):
    X, y = gaussian(300, positives=0.1)
    model = TunedThresholdClassifierCV(
        seeded(estimator), scoring="balanced_accuracy", thresholds=20, cv=3
    ).fit(X, y)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    found = model.predict(X)[y == 1].mean() + (1 - model.predict(X)[y == 0]).mean()
    assert found / 2 > 0.65


@each_fit
def test_one_against_the_rest(estimator):
    X, _ = gaussian(300)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        seeded(estimator).fit(X, y)
    model = OneVsRestClassifier(seeded(estimator)).fit(X, y)
    scores = model.decision_function(X)
    assert scores.shape == (300, 3)
    assert roc_auc_score(y == 2, scores[:, 2]) > 0.9
    assert roc_auc_score(y == 0, scores[:, 0]) > 0.9


@plain
@strict
def test_feature_names(estimator):
    X, y = gaussian(80, 3)
    frame = pd.DataFrame(X, columns=["age", "debt", "income"])
    model = trained(estimator, frame, pd.Series(y))
    assert_same_bits(model, trained(estimator, X, y))
    assert_array_equal(model.feature_names_in_, frame.columns)
    scores = trained(estimator, X, y).decision_function(X)
    # The columns of a frame are what is contiguous: sums in another order.
    atol = 1e-14 * np.abs(scores).max()
    assert_allclose(model.decision_function(frame), scores, rtol=0, atol=atol)
    with pytest.raises(ValueError, match="should match those that were passed"):
        model.predict(frame[["debt", "age", "income"]])


@plain
def test_documentation(estimator):
    text = inspect.getdoc(type(estimator))
    ours = isinstance(estimator, Chain | KernelAUCCV)
    assert ours or "References\n----------" in text
    for parameter in inspect.signature(type(estimator)).parameters.values():
        entry = re.search(rf"^{parameter.name} : (.+)$", text, re.MULTILINE)
        assert entry, f"{parameter.name} is not documented"
        if parameter.default is inspect.Parameter.empty:
            continue
        default = ast.literal_eval(entry[1].rpartition("default=")[2])
        assert default == parameter.default, f"{parameter.name} : {entry[1]}"


def test_shared_parameters_have_the_same_words():
    texts = {}
    for estimator in PLAIN:
        body = inspect.getdoc(type(estimator))
        if "shuffle" not in estimator.get_params():
            continue
        for parameter in ("max_iter", "shuffle", "random_state"):
            if parameter in estimator.get_params():
                words = re.search(rf"^{parameter} : .*\n((?:    .*\n)+)", body, re.M)[1]
                texts.setdefault(parameter, set()).add(words)
    assert {parameter: len(words) for parameter, words in texts.items()} == {
        parameter: 1 for parameter in texts
    }


# 2. Layouts


@pytest.mark.parametrize(
    "data", [scattered, pytest.param(mixed, marks=pytest.mark.smoke), scaled, constant]
)
@every_way
def test_dense_equals_csr(estimator, method, data):
    X, y = data(150)
    dense = trained(estimator, X, y, method)
    assert_close(trained(estimator, sparse.csr_array(X), y, method), dense)


@plain_linear
def test_dense_equals_csr_beyond_the_cache(estimator):
    # More than the processor's cache holds when dense, less when sparse: the rows must
    # be visited in the same order all the same.
    X, y = scattered(9000, 60, density=0.1)
    assert X.nbytes > 1 << 22
    dense = trained(estimator, X, y, max_iter=1)
    csr = sparse.csr_array(X)
    assert csr.data.nbytes + csr.indices.nbytes < 1 << 22
    # Rounding errors of 9000 steps.
    assert_close(trained(estimator, csr, y, max_iter=1), dense, 1e-9)


def strided(X):
    wider = np.zeros((2 * X.shape[0], 2 * X.shape[1]), dtype=X.dtype)
    wider[::2, ::2] = X
    return wider[::2, ::2]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def long_index(X):
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only_csr(X):
    X = sparse.csr_array(X)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def unsorted_csr(X):
    """Return a CSR matrix with entries in reverse order, one of them in two parts."""
    X = sparse.csr_array(X)
    data, indices, indptr = [], [], [0]
    for i in range(X.shape[0]):
        at = slice(X.indptr[i], X.indptr[i + 1])
        halves = X.data[at][::-1] / 2
        data += [halves, halves]
        indices += [X.indices[at][::-1]] * 2
        indptr.append(indptr[-1] + 2 * len(halves))
    return sparse.csr_array(
        (np.concatenate(data), np.concatenate(indices), indptr), X.shape
    )


def stored_zeros(X):
    """Return a CSR matrix that stores all its zeros."""
    n, d = X.shape
    index = np.tile(np.arange(d), n)
    return sparse.csr_array((X.ravel(), index, np.arange(0, n * d + 1, d)), X.shape)


DENSE = {
    "Fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "list": np.ndarray.tolist,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
}
SPARSE = {
    "int64": long_index,
    "read-only": read_only_csr,
    "unsorted": unsorted_csr,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "matrix": sparse.csr_matrix,
}


@plain_way
def test_layouts_change_nothing(estimator, method, tmp_path):
    X, y = mixed(60)
    X = np.round(X, 2)
    expected = trained(estimator, X, y, method)
    for layout in DENSE.values():
        assert_same_bits(trained(estimator, layout(X), y, method), expected)
    assert_same_bits(trained(estimator, mapped(X, tmp_path), y, method), expected)
    expected = trained(estimator, sparse.csr_array(X), y, method)
    for layout in SPARSE.values():
        assert_same_bits(trained(estimator, layout(X), y, method), expected)
    assert_close(trained(estimator, stored_zeros(X), y, method), expected)


@plain
def test_few_signatures(estimator, tmp_path, monkeypatch):
    """Two layouts, two float types, with and without running statistics: no more.

    Noted, and run in double: to compile every signature of every estimator would take
    a minute.
    """
    if not isinstance(estimator, OnlineAUC | BatchAUC):
        pytest.skip("no kernel goes over the rows")
    signatures = {}

    def noted(kernel):
        def note(X, *others):
            types = tuple(typeof(argument) for argument in (X, *others))
            signatures.setdefault(kernel, set()).add(types)
            if isinstance(X, np.ndarray):
                result = kernel(X.astype(float), *others)
            else:
                result = kernel(type(X)(X[0].astype(float), *X[1:]), *others)
            assert result is None  # else Ctrl-C could crash the interpreter

        return note

    for name, module in [*sys.modules.items()]:
        if name.startswith("aucmax."):
            for kernel in ("update", "learn_rows"):
                if hasattr(module, kernel):
                    monkeypatch.setattr(module, kernel, noted(getattr(module, kernel)))
    X, y = mixed(40)
    for kind in (np.float32, np.float64):
        typed = X.astype(kind)
        inputs = [layout(typed) for layout in {**DENSE, **SPARSE}.values()]
        inputs += [mapped(typed, tmp_path), X.astype(int), sparse.csr_array(typed)]
        for labels in (y.astype(bool), y.astype(np.int8), y.tolist()):
            seeded(estimator, max_iter=1).fit(typed, labels)
        for rows in inputs:
            seeded(estimator, max_iter=1).fit(rows, y)
            if hasattr(estimator, "partial_fit"):
                model = seeded(estimator).partial_fit(rows, y)
                model.partial_fit(X, y).partial_fit(sparse.csr_array(X), y)
                pickle.loads(pickle.dumps(model)).partial_fit(rows, y)
    whole = [
        key for key, value in estimator.get_params().items() if type(value) is float
    ]
    seeded(estimator).set_params(**dict.fromkeys(whole, 1)).fit(X, y)
    assert not isinstance(estimator, OnlineAUC) or signatures
    assert all(len(types) <= 8 for types in signatures.values()), signatures


@plain
def test_float32_ranks_alike(estimator):
    X, y = scaled(300)
    X = X.astype(np.float32)
    single = trained(estimator, X, y)
    double = trained(estimator, X.astype(np.float64), y)
    # The values are the same ones, and sums are in double: so are the scores.
    a, b = single.decision_function(X), double.decision_function(X)
    assert spearmanr(a, b).statistic > 0.9999


@each_fit_way
def test_a_matrix_that_points_nowhere_is_refused(estimator, method):
    """Kernels do not look at every index: it would crash the interpreter."""
    X, y = gaussian(60)
    model = trained(estimator, X, y, method)
    for name, value in (("indices", 10**8), ("indices", -1), ("indptr", 10**8)):
        rows = sparse.csr_array(X)
        getattr(rows, name)[1] = value
        with pytest.raises(ValueError, match=f"{value}"):
            getattr(seeded(estimator), method)(rows, y)
        with pytest.raises(ValueError, match=f"{value}"):
            model.decision_function(rows)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        *ways([UniExp()]),
        *((e, "fit") for e in one_of_each_fit() if not isinstance(e, SPAM | AUCStream)),
    ],
    ids=name,
)
def test_float32_in_any_layout(estimator, method):
    """Not for all: reading a row is not their business, but that of core/rows.py.

    UniExp inherits what SPAM does, and AUCStream is made of; its kernels are compiled
    soonest.
    """
    X, y = scaled(300)
    X = X.astype(np.float32)
    dense = trained(estimator, X, y, method)
    assert_close(trained(estimator, sparse.csr_array(X), y, method), dense)
    double = trained(estimator, X.astype(np.float64), y, method)
    a, b = dense.decision_function(X), double.decision_function(X)
    assert spearmanr(a, b).statistic > 0.9999


@plain
def test_rounding_to_float32_hardly_matters(estimator):
    X, y = gaussian(300)
    single = trained(estimator, X.astype(np.float32), y)
    double = trained(estimator, X, y)
    rank = spearmanr(single.decision_function(X), double.decision_function(X))
    assert rank.statistic > 0.999
    assert abs(area(single, X, y) - area(double, X, y)) < 1e-3


# 3. Chunks and weights


def in_chunks(estimator, X, y, cuts, layouts=(np.asarray,), weight=None):
    model = seeded(estimator)
    edges = [0, *sorted(cuts), len(y)]
    pieces = [(lo, hi) for lo, hi in pairwise(edges) if hi > lo]
    for k, (lo, hi) in enumerate(pieces):
        rows = layouts[k % len(layouts)](X[lo:hi])
        share = None if weight is None else weight[lo:hi]
        model.partial_fit(rows, y[lo:hi], classes=[0, 1], sample_weight=share)
    return model


cuts_of_60 = st.lists(st.integers(0, 60), max_size=6)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@online
def test_any_chunking_is_one_call(estimator, layout):
    X, y = mixed(60)
    weight = np.random.default_rng(0).random(60) + 0.5
    whole = in_chunks(estimator, X, y, [], (layout,), weight)

    @patient
    @given(cuts_of_60)
    def check(cuts):
        assert_same(in_chunks(estimator, X, y, cuts, (layout,), weight), whole)

    check()


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@online
def test_rows_one_by_one(estimator, layout):
    X, y = mixed(700)  # long enough for a proximal map or two
    whole = in_chunks(estimator, X, y, [], (layout,))
    # One by one at first, and about the rows 256 and 512, where such maps are due.
    cuts = [*range(1, 40), *range(250, 262), *range(506, 518)]
    assert_same(in_chunks(estimator, X, y, cuts, (layout,)), whole)


@online
def test_chunks_of_one_class(estimator):
    X, y = mixed(60)
    by_class = np.argsort(y, kind="stable")
    X, y = X[by_class], y[by_class]
    whole = in_chunks(estimator, X, y, [])
    zeros = int(np.sum(y == 0))
    assert_same(in_chunks(estimator, X, y, [zeros]), whole)
    assert_same(in_chunks(estimator, X, y, [5, zeros, zeros + 1]), whole)


@online
def test_chunks_may_switch_layout(estimator):
    X, y = mixed(60)
    whole = in_chunks(estimator, X, y, [])

    @patient
    @given(cuts_of_60)
    def check(cuts):
        layouts = (np.asarray, sparse.csr_array)
        assert_close(in_chunks(estimator, X, y, cuts, layouts), whole)

    check()


@online
def test_features_that_come_later(estimator):
    """Room made in the middle of a stream is as good as room from the start."""
    X, y = scattered(120, 12)
    X[:60, 7:] = 0.0
    X = sparse.csr_array(X)
    wide = in_chunks(estimator, X, y, [60], (sparse.csr_array,))
    model = seeded(estimator).partial_fit(X[:60, :7], y[:60], classes=[0, 1])
    model.resize(14)  # to spare
    model.resize(12)
    assert_finite(model)
    assert model.decision_function(X[:60]).shape == (60,)
    if isinstance(model, LinearRanker):
        for part in arrays(model.state_).values():
            assert part.flags.forc  # or else kernels are compiled once more
    model.partial_fit(X[60:], y[60:])
    if isinstance(model, LinearRanker):
        assert_close(model, wide)
    elif not isinstance(
        getattr(model, "map", None), Projection
    ):  # which would have mixed them in
        score = wide.decision_function(X)
        assert_allclose(model.decision_function(X), score, rtol=1e-6, atol=1e-6)


@online
def test_a_stream_in_parts_larger_than_a_piece(estimator, monkeypatch):
    """The base class hands out orders piece by piece; nothing may show at the seam."""
    monkeypatch.setattr("aucmax.online.base._PIECE", 64)
    monkeypatch.setattr("aucmax.online.base._MIN_RUNS", 20)  # runs of several rows
    X, y = gaussian(203, 2)
    pieces = [len(order) for order in visits(y + 1.0, None)]
    assert len(pieces) > 3
    assert sum(pieces) == 203
    assert_same(in_chunks(estimator, X, y, [99]), in_chunks(estimator, X, y, []))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@every_way
def test_a_row_of_weight_zero_is_not_there(estimator, method, layout):
    X, y = mixed(60)
    rng = np.random.default_rng(1)
    here = rng.random(90) < 0.6
    here[:3] = False  # the very first rows too
    n = int(here.sum())
    wild, labels = 1e6 * rng.standard_normal((90, X.shape[1])), rng.integers(0, 2, 90)
    wild[here], labels[here] = X[:n], y[:n]
    weight = here * (rng.random(90) + 0.5)

    def run(X, y, weight):
        model = seeded(estimator)
        fit = getattr(model, method)
        return fit(layout(X), y, sample_weight=weight)

    assert_same_bits(run(wild, labels, weight), run(X[:n], y[:n], weight[here]))


@every_way
def test_a_constant_factor_of_all_weights_does_nothing(estimator, method):
    X, y = mixed(80)
    weight = np.random.default_rng(0).random(80) + 0.5
    # A default penalty that falls with the rows takes a weight of k for k rows.
    given = {"l2": 1e-4} if "auto" in map(str, estimator.get_params().values()) else {}

    def scores(factor):
        model = seeded(estimator, **given)
        getattr(model, method)(X, y, sample_weight=factor * weight)
        return model.decision_function(X)

    expected = scores(1.0)
    rtol = 1e-9 if isinstance(estimator, LinearRanker) else 1e-6  # float32
    atol = rtol * np.abs(expected).max()
    for factor in (7.3, 1e-6, 1e6):
        assert_allclose(scores(factor), expected, rtol=rtol, atol=atol)


@of([e for e in VARIANTS if not isinstance(e, AUCClassifier)])  # other folds
def test_a_weight_of_k_is_k_rows(estimator):
    # Exactly so for the class moments (tests/core/test_moments.py) and the minimum
    # (below); an online learner takes one step where it would take k, so here its
    # scores are near, no more. How near depends on the order of rows: the median of
    # five seeds.
    X, y = gaussian(400)
    times = np.random.default_rng(0).integers(1, 4, 400)
    found = []
    for seed in range(5):
        repeated = seeded(estimator, max_iter=20, random_state=seed)
        repeated.fit(X.repeat(times, axis=0), y.repeat(times))
        weighted = seeded(estimator, max_iter=20, random_state=seed)
        weighted.fit(X, y, sample_weight=times)
        if type(estimator).__name__ in EXACT:
            assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
        a, b = weighted.decision_function(X), repeated.decision_function(X)
        found.append(spearmanr(a, b).statistic)
    assert np.median(found) > 0.97


@every
def test_weights_matter(estimator):
    """Weights must change the ranking in favour of the rows that weigh more."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    first = rng.random(400) < 0.5
    y = (np.where(first, X[:, 0], X[:, 1]) > 0.3).astype(int)
    for favoured, column in ((first, 0), (~first, 1)):
        weight = np.where(favoured, 1.0, 0.01)
        model = seeded(estimator).fit(X, y, sample_weight=weight)
        if isinstance(model, LinearRanker):
            w = model.coef_[0]
            assert w[column] > 3 * abs(w[1 - column])
        assert area(model, X[favoured], y[favoured]) > 0.85


# 4. One class


@online
@strict
def test_a_prefix_of_one_class(estimator):
    X, y = gaussian(60)
    for label in (0, 1):
        only, rest = y == label, y != label
        model = seeded(estimator).partial_fit(X[only], y[only], classes=[0, 1])
        assert_array_equal(model.decision_function(X), 0.0)
        model.partial_fit(X[rest], y[rest])
        assert_finite(model)
        assert np.any(model.decision_function(X) != 0.0)


@pytest.mark.parametrize("labels", [[0], [1], ["yes"]])
@each_fit
def test_fit_needs_two_classes(estimator, labels):
    with pytest.raises(ValueError, match=r"only one class: \["):
        seeded(estimator).fit([[0.0], [1.0], [2.0]], labels * 3)


@plain
def test_fit_needs_two_classes_that_weigh(estimator):
    X, y = gaussian(20)
    for label in (0, 1):
        with pytest.raises(ValueError, match=rf"class.*{label}.* weight above zero"):
            seeded(estimator).fit(X, y, sample_weight=1.0 * (y != label))


@online
def test_first_partial_fit_asks_for_classes(estimator):
    with pytest.raises(ValueError, match="classes="):
        seeded(estimator).partial_fit([[0.0], [1.0]], [1, 1])


# 5. Same input, same bits


@every
def test_same_seed_same_bits(estimator):
    X, y = mixed(100)
    expected = trained(estimator, X, y)
    assert_same_bits(trained(estimator, X, y), expected)
    # What was learnt before does not matter.
    again = trained(estimator, *gaussian(50, X.shape[1]))
    assert_same_bits(again.fit(X, y), expected)
    model = seeded(estimator, random_state=np.random.RandomState(0)).fit(X, y)
    assert_same_bits(model, expected)


@every
def test_the_seed_matters(estimator):
    X, y = mixed(100)
    if "random_state" not in " ".join(estimator.get_params()):
        pytest.skip("nothing is random")
    if isinstance(estimator, KernelBAM | KernelAUCCV):
        pytest.skip("nothing is random without a subsample, or in the linear ranker")
    other = trained(estimator, X, y, random_state=1).decision_function(X)
    assert np.any(other != trained(estimator, X, y).decision_function(X))
    if "shuffle" not in estimator.get_params():
        return
    fixed = [seeded(estimator, shuffle=False), seeded(estimator, shuffle=False)]
    fixed[1].set_params(random_state=1)
    assert_same_bits(fixed[0].fit(X, y), fixed[1].fit(X, y))


@plain
def test_threads_do_not_matter(estimator, monkeypatch):
    X, y = mixed(2000)
    monkeypatch.setattr(
        "aucmax.base.class_moments._BLOCK_BYTES", 1 << 13
    )  # many blocks
    monkeypatch.setattr("aucmax.base.class_moments.cpu_count", lambda: 1)
    alone = trained(estimator, X, y, max_iter=1)
    for cpus in (2, 7, None):
        monkeypatch.setattr(
            "aucmax.base.class_moments.cpu_count", lambda cpus=cpus: cpus
        )
        assert_same_bits(trained(estimator, X, y, max_iter=1), alone)


@plain_way
def test_threads_of_blas_do_not_matter(estimator, method):
    rng = np.random.default_rng(0)
    # Products of vectors are cut into parts for threads from 10 000 numbers on.
    narrow = type(estimator).__name__ in NARROW or isinstance(estimator, AUCClassifier)
    d = 300 if narrow else 20_001
    X, y = rng.standard_normal((20, d)), np.arange(20) % 2
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(trained(estimator, X, y, method, max_iter=2))
    assert_same_bits(*models)


@plain
def test_global_random_state_is_not_touched(estimator):
    X, y = gaussian(50)
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.get_state(legacy=False)  # noqa: NPY002
    for seed in (0, None):
        seeded(estimator, random_state=seed).fit(X, y).predict(X)
        found = np.random.get_state(legacy=False)  # noqa: NPY002
        assert found["state"]["pos"] == expected["state"]["pos"]
        assert_array_equal(found["state"]["key"], expected["state"]["key"])


@plain_way
def test_parameters_and_inputs_are_left_alone(estimator, method):
    X, y = mixed(50)
    weight = np.ones(50)
    weight[3] = 0.0
    for rows in (X, np.asfortranarray(X), sparse.csr_array(X), unsorted_csr(X)):
        model = seeded(estimator)
        parameters = repr(model.get_params())
        before = copy.deepcopy((rows, y, weight))
        getattr(model, method)(rows, y, sample_weight=weight)
        model.predict(rows)
        assert repr(model.get_params()) == parameters
        parts = ["data", "indices", "indptr"] if sparse.issparse(rows) else []
        for part in parts:
            assert_array_equal(getattr(rows, part), getattr(before[0], part))
        if not parts:
            assert_array_equal(rows, before[0])
        assert_array_equal(y, before[1])
        assert_array_equal(weight, before[2])


# 6. Awkward data


@every_way
@strict
def test_units_do_not_matter(estimator, method):
    parameters = estimator.get_params()
    changes = [(1e3, 0.0), (1e-3, 0.0), (1.0, 1e6)]
    if not parameters.get("precondition", True):
        del changes[2]  # without it rows are not centred: the user's choice
    # A penalty is in units of the weights: without one, units drop out. That of a
    # kernel is not, and without it there are many steps of O(n²).
    is_linear = isinstance(estimator, LinearRanker)
    free = {key: 0.0 for key in ("l1", "l2") if key in parameters and is_linear}
    X, y = gaussian(1500 if is_linear else 500, 5)
    expected = area(trained(estimator, X, y, method, **free), X, y)
    for factor, shift in changes:
        changed = factor * X + shift
        model = trained(estimator, changed, y, method, **free)
        assert_finite(model)
        assert abs(area(model, changed, y) - expected) < 0.01, (factor, shift)
        # With the penalty as it is, nothing may break either.
        model = trained(estimator, changed, y, method)
        assert_finite(model)
        if not parameters.get("l1"):  # the lasso drops small features, as it should
            assert area(model, changed, y) > 0.7, (factor, shift)


def no_signal():
    X, y = gaussian(100, 3)
    return np.zeros_like(X), y


AWKWARD = {
    "constant columns": (constant, 0.75),
    "constant columns, one pass of few rows": (lambda: constant(12), 0.5),
    "rows of zeros": (lambda: scattered(100, 4), 0.65),  # most rows tie
    "nothing but zeros": (no_signal, 0.5),
    "one feature": (lambda: gaussian(200, 1), 0.7),
    "one feature, upside down": (
        lambda: (-gaussian(200, 1)[0], gaussian(200, 1)[1]),
        0.7,
    ),
    "two rows": (lambda: (np.array([[0.0, 3.0], [1.0, 3.0]]), np.array([0, 1])), 1.0),
    "two equal rows": (lambda: (np.ones((2, 3)), np.array([0, 1])), 0.5),
    "duplicates": (lambda: [a.repeat(20, axis=0) for a in gaussian(10, 2)], 0.7),
    "the same feature three times": (
        lambda: (gaussian(200, 2)[0][:, [0, 0, 0, 1]], gaussian(200, 2)[1]),
        0.7,
    ),
    "scales from 1e-6 to 1e6": (lambda: scaled(400, 7, decades=6.0), 0.7),
    "more features than rows": (lambda: gaussian(30, 100), 0.9),
    "one positive": (lambda: rare(2000), 0.9),
    "one negative": (lambda: (rare(2000)[0], 1 - rare(2000)[1]), 0.9),
}


def refuses_to_cross_validate(estimator, X, y):
    """Whether there is one row of a class, an estimator with folds, and an error."""
    if "cv" not in estimator.get_params() or np.bincount(y).min() > 1:
        return False
    single = type(estimator).__name__.removesuffix("CV")
    single = {"KernelAUC": "KernelBAM", "AUCClassifier": "BAM"}.get(single, single)
    with pytest.raises(ValueError, match=rf"two rows of each class.*use {single}\."):
        seeded(estimator).fit(X, y)
    return True


# A variant is the same code but for a step, a penalty or a buffer: what could be
# awkward for that, whatever the layout.
FOR_VARIANTS = [
    "constant columns",
    "rows of zeros",
    "two rows",
    "the same feature three times",
    "scales from 1e-6 to 1e6",
    "one positive",
]


@pytest.mark.parametrize(
    ("estimator", "method", "case"),
    [(*way, case) for way in ways(PLAIN) for case in AWKWARD]
    + [(*way, case) for way in ways(VARIANTS[len(PLAIN) :]) for case in FOR_VARIANTS],
    ids=name,
)
@pytest.mark.filterwarnings("ignore:190 of 200 rows equal another row:UserWarning")
@strict
@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_awkward_data(estimator, method, case):
    data, at_least = AWKWARD[case]
    X, y = data()
    if refuses_to_cross_validate(estimator, X, y):
        return
    # With one feature, rows of CSR would be compiled once more: see one_feature below.
    both = estimator in PLAIN and X.shape[1] > 1
    layouts = (np.asarray, sparse.csr_array)[: 1 + both]
    for rows in (layout(X) for layout in layouts):
        model = trained(estimator, rows, y, method)
        assert_finite(model)
        assert area(model, rows, y) >= at_least


@plain_way
@strict
def test_more_features_than_16_bits_count(estimator, method):
    X, y = wide()
    if isinstance(estimator, AUCClassifier):  # trees would make all of it dense
        estimator = AUCClassifier([BAM(), LeastSquaresAUC()], cv=2)
    try:
        model = trained(estimator, X, y, method)
    except ValueError as error:
        assert type(estimator).__name__ in NARROW
        assert re.search("70000 features .* (GB|MB)", str(error))  # noqa: PT017
        return
    assert_finite(model)
    if isinstance(model, LinearRanker):
        assert model.coef_[0, -1] > 0.0 > model.coef_[0, -2]
    assert area(model, X, y) > 0.8


@plain_way
def test_features_that_never_occur_do_not_matter(estimator, method):
    """As in a small table whose categories are hashed; and units differ."""
    X, y = scaled(300, 5)
    X[:, 3:] *= np.random.default_rng(0).random((300, 2)) < 0.3  # rare ones
    rows = sparse.csr_array(X)
    where = np.array([1, 17, 40, 199, 399])
    parts = rows.data, where[rows.indices], rows.indptr
    wide = sparse.csr_array(parts, shape=(300, 400))
    expected = area(trained(estimator, rows, y, method), rows, y)
    found = area(trained(estimator, wide, y, method), wide, y)
    assert found == pytest.approx(expected, abs=0.01)


@plain_way
@strict
def test_one_positive_in_a_hundred_thousand_rows(estimator, method):
    # Or two: with one, folds are refused, see test_awkward_data.
    X, y = rare(positives=2 if "cv" in estimator.get_params() else 1)
    if isinstance(estimator, KernelBAM):
        with pytest.raises(ValueError, match="matrix of 100000 rows would take 80 GB"):
            trained(estimator, X, y, method)
        return
    model = trained(estimator, X, y, method)
    assert_finite(model)
    assert area(model, X, y) > 0.95


@pytest.mark.parametrize("huge", [1e100, 1e153])
@every_way
@strict
def test_extreme_but_finite_values(estimator, method, huge):
    """An error is as good as a model; a model of NaNs is not."""
    X, y = gaussian(100, 3)
    for factor in (huge, 1 / huge, [huge, 1.0, 1 / huge]):
        try:
            model = trained(estimator, X * factor, y, method)
        except ValueError as error:
            assert "exceed the range" in str(error)  # noqa: PT017
        else:
            assert_finite(model)


@pytest.mark.parametrize("values", [1e160, 1e200, 1e-160, 1e-170, 1e-200, 1e-310])
@plain_way
@strict
def test_squares_out_of_range(estimator, method, values):
    X, y = gaussian(100, 3)
    X[:, 1] *= values
    try:
        model = trained(estimator, X, y, method)
    except ValueError as error:
        assert "exceed the range" in str(error)  # noqa: PT017
    else:
        assert_finite(model)


@pytest.mark.parametrize("name", ["diabetes", "german", "svmguide3.train", "thyroid"])
@plain_linear
def test_raw_real_data(estimator, name):
    X, y = shared(name)
    X = X.toarray()
    best = roc_auc_score(y, X @ closed_form(X, y, 1e-8))
    # A few passes over a thousand rows, or over a hundred positives.
    assert area(trained(estimator, X, y), X, y) > best - 0.03


@by(ONLINE)
def test_ordinary_scores_are_far_from_divergence(estimator, method):
    for data in (gaussian, scattered, scaled, mixed, constant, lambda: rare(2000)):
        X, y = data()
        model = trained(estimator, X, y, method)
        if isinstance(estimator, CBR) and not estimator.precondition:
            assert model._widest == np.inf  # scores in units of the data
            continue
        if isinstance(estimator, Chain):
            X, model = model.map_.transform(X), model.learner_
        # As if features were uncorrelated, which the scores themselves do not say.
        spread = np.linalg.norm(model.coef_[0] * X.std(axis=0))
        assert spread < WIDEST / 100, data


def informative(n, seed, d=3):
    """Return rows of which the first feature tells the classes apart, alone."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X[:, 0] + 1.3 * rng.standard_normal(n) > 0.6).astype(int)


def enough_rows(estimator):
    return 800 if isinstance(estimator, KernelBAM) else 3000  # it takes O(n³)


@plain_way
def test_units_of_one_feature_do_not_matter(estimator, method):
    X, y = informative(enough_rows(estimator), 0)
    X_test, y_test = informative(4000, 1)
    expected = area(trained(estimator, X, y, method), X_test, y_test)
    assert expected > 0.75
    for column, factor in ((0, 1e-6), (0, 1e4), (1, 1e-4), (1, 1e6)):
        unit = np.ones(3)
        unit[column] = factor
        model = trained(estimator, X * unit, y, method)
        found = area(model, X_test * unit, y_test)
        assert abs(found - expected) < 0.002, (column, factor)


@plain_way
def test_a_feature_may_be_far_from_zero(estimator, method):
    """As a date in seconds is: millions of spreads."""
    X, y = informative(enough_rows(estimator), 0)
    X_test, y_test = informative(4000, 1)
    expected = area(trained(estimator, X, y, method), X_test, y_test)
    for layout, offset in ((np.asarray, 1e6), (sparse.csr_array, 4e6)):
        away = np.array([offset, 0.0, -offset])
        model = trained(estimator, layout(X + away), y, method)
        # Rounding decides which pairs have a loss: the last weights of SAM, which are
        # no mean, are others then.
        within = 0.01 if type(estimator) is SAM else 0.002
        assert abs(area(model, X_test + away, y_test) - expected) < within, offset


# Zeros are what CSR leaves out.
SLEEPY = {
    "tiny-dense": (1e-6, np.asarray),
    "small-CSR": (1e-2, sparse.csr_array),
    "zero-dense": (0.0, np.asarray),
    "zero-CSR": (0.0, sparse.csr_array),
}


@pytest.mark.parametrize("asleep", SLEEPY)
@pytest.mark.parametrize("informs", [True, False], ids=["informative", "noise"])
@pytest.mark.parametrize(
    "estimator",
    # The map of a chain is settled by the first rows: see tests/features/test_chain.py.
    [one for one in PLAIN if hasattr(one, "partial_fit") and type(one) is not Chain],
    ids=name,
)
def test_a_feature_may_wake_up(estimator, informs, asleep):
    """What it was like before does not spoil what is learnt."""
    factor, layout = SLEEPY[asleep]
    X, y = informative(1600, 0, d=2)
    X_test, y_test = informative(4000, 1, d=2)
    sleeper = 0 if informs else 1
    X[:400, sleeper] *= factor
    awake = area(trained(estimator, X[400:], y[400:], "fit"), X_test, y_test)
    model = trained(estimator, layout(X), y, "partial_fit")
    assert area(model, X_test, y_test) > awake - 0.01


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
@pytest.mark.parametrize(
    "estimator",
    [
        one
        for one in PLAIN
        if hasattr(one, "partial_fit")
        and type(one) not in (CBR, FSAUC, SAM, LeastSquaresAUC)
    ],
    ids=name,
)
def test_one_wild_row_does_not_spoil_a_stream(estimator, distance):
    """A row far out, on the wrong side: what was learnt before it stays.

    Because the weights are an average. CBR, FSAUC and SAM have none, or not of all
    rows; LeastSquaresAUC is the minimum of a loss that such a row dominates.
    """
    X, y = informative(600, 0)
    X_test, y_test = informative(4000, 1)
    model = trained(estimator, X, y, "partial_fit")
    before = area(model, X_test, y_test)
    wild = np.array([[-distance, 0.0, 0.0]])
    model.partial_fit(wild, [1])
    assert area(model, X_test, y_test) > before - 0.01
    model.partial_fit(X[:100], y[:100])
    assert area(model, X_test, y_test) > before - 0.05


# 7. Errors and warnings that say what and where


def warned(model, X, y):
    """Return what ``fit`` says of its convergence."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(X, y)
    return [str(w.message) for w in caught if w.category is ConvergenceWarning]


@linear
def test_who_runs_out_of_rounds_says_so(estimator):
    X, y = gaussian(300, 30)
    parameters = estimator.get_params()
    model = seeded(estimator, max_iter=1)
    if not {"tol", "max_iter"} <= parameters.keys() or direct(model):
        assert warned(model, X, y) == []
        return
    (text,) = warned(model, X, y)  # one, however many fits there are inside
    name = type(estimator).__name__
    found = re.match(
        rf"{name} has not converged within max_iter=1: .* is (\S+), "
        r"where (\S+) is asked for\. Raise max_iter",
        text,
    )
    assert found, text
    left, asked = map(float, found.groups())
    assert left > asked
    if parameters["tol"] is not None and not parameters.get("l1"):
        assert asked == parameters["tol"]


def direct(model):
    """Whether a system is solved directly, whatever ``max_iter``."""
    parameters = model.get_params()
    return parameters.get("solver") == "auto" and not parameters["l1"]


@pytest.mark.parametrize("data", [gaussian, scattered, scaled, mixed, constant])
@plain
def test_who_is_done_does_not_warn(estimator, data):
    assert warned(seeded(estimator), *data(200)) == []


@plain
def test_a_tolerance_of_zero_asks_for_all_passes(estimator):
    if "tol" in estimator.get_params():
        model = seeded(estimator, tol=0.0, max_iter=3)
        try:
            assert warned(model, *gaussian(300, 30)) == []
        except InvalidParameterError:
            assert model._parameter_constraints["tol"][0].closed == "neither"


def spoilt(value):
    X, y = gaussian(30, 4)
    X[np.abs(X) < 0.3] = 0.0
    X[7, 2] = value
    return X, y


LAYOUTS = {
    "dense": np.asarray,
    "float32": np.float32,
    "Fortran": np.asfortranarray,
    "list": np.ndarray.tolist,
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "LIL": sparse.lil_array,
    "DOK": sparse.dok_array,
    "frame": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "mixed frame": lambda X: pd.DataFrame(X, columns=list("abcd")).assign(
        b=X[:, 1] > 0.0
    ),
}


def assert_named(estimator, layout, value):
    """Check that everything which takes rows says where this value is."""
    X, y = spoilt(value)
    kind = "NaN" if np.isnan(value) else "infinity"
    column = r"2 \('c'\)" if "frame" in layout else "2"
    text = rf"contains {kind} at row 7, column {column}"
    convert = LAYOUTS[layout]
    fitted = trained(estimator, convert(spoilt(0.5)[0]), y)
    calls = [seeded(estimator).fit]
    if hasattr(estimator, "partial_fit"):
        calls += [seeded(estimator).partial_fit, fitted.partial_fit]
    for call in calls:
        with pytest.raises(ValueError, match=text):
            call(convert(X), y)
    for call in (fitted.decision_function, fitted.predict):
        with pytest.raises(ValueError, match=text):
            call(convert(X))


def takes_nan(estimator, layout, value):
    """Whether a number is missing, and somebody knows what to do about it."""
    tags = estimator.__sklearn_tags__()
    return np.isnan(value) and tags.input_tags.allow_nan and layout != "CSR"


@pytest.mark.parametrize("layout", ["dense", "CSR"])
@plain
@strict
def test_what_is_not_finite_is_named(estimator, layout):
    for value in (np.nan, np.inf, -np.inf):
        if not takes_nan(estimator, layout, value):
            assert_named(estimator, layout, value)


@pytest.mark.parametrize(
    "layout", [key for key in LAYOUTS if key not in ("dense", "CSR")]
)
@each_fit
@strict
def test_what_is_not_finite_is_named_in_any_layout(estimator, layout):
    value = np.inf if takes_nan(estimator, layout, np.nan) else np.nan
    assert_named(estimator, layout, value)


@plain_way
@strict
def test_both_infinities_and_nan(estimator, method):
    X, y = spoilt(np.inf)
    X[8, 2], X[9, 3] = -np.inf, np.nan
    with pytest.raises(ValueError, match="infinity at row 7, column 2"):
        trained(estimator, X, y, method)


@each_fit_way
def test_input_that_is_no_matrix(estimator, method):
    model = seeded(estimator)
    call = getattr(model, method)
    X, y = gaussian(10, 2)
    with pytest.raises(ValueError, match=r"convert string to float: .*red"):
        call([["red", 1.0], [2.0, 3.0]], [0, 1])
    with pytest.raises(ValueError, match="0 sample"):
        call(np.empty((0, 3)), [])
    with pytest.raises(ValueError, match="0 feature"):
        call(np.empty((10, 0)), y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        call(X[:, 0], y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[10, 9\]"):
        call(X, y[:9])
    with pytest.raises(ValueError, match="Complex data not supported"):
        call(X * 1j, y)
    with pytest.raises(ValueError, match=r"y contains NaN"):
        call(X, np.where(y == 1, np.nan, 0.0))
    with pytest.raises(ValueError, match="continuous"):
        call(X, X[:, 0])


@plain
def test_wrong_width(estimator):
    X, y = gaussian(30, 4)
    model = trained(estimator, X, y)
    text = f"X has 3 features, but {type(estimator).__name__} is expecting 4"
    for rows in (X[:, :3], sparse.csr_array(X[:, :3])):
        with pytest.raises(ValueError, match=text):
            model.predict(rows)
        if hasattr(model, "partial_fit"):
            with pytest.raises(ValueError, match=text):
                model.partial_fit(rows, y)


@online
def test_labels_that_were_not_there_before(estimator):
    X, y = gaussian(10)
    for labels, strange in (
        (y, 7),
        (y.astype(float), 0.5),
        (np.array(["n", "p"])[y], "maybe"),
    ):
        model = seeded(estimator).partial_fit(X, labels)
        later = labels.astype(object)
        later[4] = strange
        with pytest.raises(ValueError, match=rf"unseen.*{strange}.* row 4"):
            model.partial_fit(X, later.tolist())
    model = seeded(estimator)
    with pytest.raises(ValueError, match=r"unseen.* row "):
        model.partial_fit(X, y, classes=[0, 2])
    model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"\[0, 2\].*\[0, 1\]"):
        model.partial_fit(X, y, classes=[0, 2])


@each_fit_way
def test_bad_weights(estimator, method):
    X, y = gaussian(10)
    model = seeded(estimator)
    call = getattr(model, method)
    for bad in (-1.0, np.nan, np.inf):
        weight = np.ones(10)
        weight[6] = bad
        with pytest.raises(ValueError, match=f"sample_weight.*{bad}.*row 6"):
            call(X, y, sample_weight=weight)
    for shape in (9, 11, (10, 1)):
        with pytest.raises(ValueError, match=r"sample_weight\.shape"):
            call(X, y, sample_weight=np.ones(shape))


@pytest.mark.parametrize("weight", [1e308, 1e-320])
@plain_way
@strict
def test_weights_out_of_range(estimator, method, weight):
    """An error is as good as a model; a model of NaNs is not."""
    X, y = gaussian(50)
    model = seeded(estimator)
    call = getattr(model, method)
    try:
        call(X, y, sample_weight=np.full(50, weight))
    except ValueError as error:
        assert "weight" in str(error)  # noqa: PT017
    else:
        assert_finite(model)


@online
def test_a_call_that_fails_changes_nothing(estimator):
    X, y = gaussian(40)
    model = trained(estimator, X, y, "partial_fit")
    expected = copy.deepcopy(model)
    bad = X.copy()
    bad[-1, 0] = np.nan
    for rows, labels, weight in (
        (bad, y, None),
        (X[:, :2], y, None),
        (X, y + 1, None),
        (X, y, -y),
    ):
        with pytest.raises(ValueError, match=r"NaN|features|unseen|weight"):
            model.partial_fit(rows, labels, sample_weight=weight)
        assert_same_bits(model, expected)
        assert model.n_features_in_ == 6
    assert_same_bits(model.partial_fit(X, y), expected.partial_fit(X, y))


@plain
def test_bad_parameters(estimator):
    X, y = gaussian(20)
    for bad in ({"max_iter": 0}, {"max_iter": 1.5}, {"eta0": -1.0}, {"shuffle": "no"}):
        if bad.keys() <= estimator.get_params().keys():
            with pytest.raises(ValueError, match=f"The '{next(iter(bad))}' parameter"):
                seeded(estimator, **bad).fit(X, y)


# 8. Saved, copied, resumed


def through_a_file(model, folder):
    model.save(folder / "model.aucmax")
    return aucmax.load(folder / "model.aucmax")


COPIES = {
    "save": through_a_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


def copied(estimators):
    """Return a mark for copies in every way; of variants only the way that is ours."""
    found = [(e, way) for e in estimators for way in COPIES]
    found = [(e, way) for e, way in found if way == "save" or e in PLAIN]
    return pytest.mark.parametrize(("estimator", "way"), found, ids=name)


@copied(VARIANTS)
def test_copies_are_equal(estimator, way, tmp_path):
    X, y = mixed(100)
    for rows in (X, sparse.csr_array(X)):
        labels = np.array(["no", "yes"])[y]
        model = trained(estimator, rows, labels)
        twin = COPIES[way](model, tmp_path)
        assert type(twin) is type(model)
        assert repr(twin.get_params()) == repr(model.get_params())
        assert_same_bits(twin, model)
        assert_array_equal(twin.classes_, model.classes_)
        assert_array_equal(twin.decision_function(X), model.decision_function(X))
        assert_array_equal(twin.predict(X), model.predict(X))
        assert_same_bits(clone(twin).fit(rows, labels), model)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
@copied(ONLINE)
def test_training_goes_on_as_if_nothing_had_happened(estimator, way, layout, tmp_path):
    X, y = mixed(600)
    uninterrupted = seeded(estimator)
    model = seeded(estimator)
    for lo, hi in ((0, 5), (5, 300), (300, 600)):
        part = layout(X[lo:hi]), y[lo:hi]
        uninterrupted.partial_fit(*part, classes=[0, 1])
        model = COPIES[way](model, tmp_path) if lo else model
        model.partial_fit(*part, classes=[0, 1])
    assert_same_bits(model, uninterrupted)
    fitted = trained(estimator, layout(X), y)
    twin = COPIES[way](fitted, tmp_path)
    assert_same_bits(twin.partial_fit(layout(X), y), fitted.partial_fit(layout(X), y))


@copied(ONLINE)
def test_copies_live_apart(estimator, way, tmp_path):
    X, y = mixed(100)
    model = trained(estimator, X, y, "partial_fit")
    twin = COPIES[way](model, tmp_path)
    before = everything(twin)
    model.partial_fit(X, y)
    for key, value in everything(twin).items():
        assert_array_equal(value, before[key])


def test_what_goes_into_a_file(tmp_path):
    X, y = gaussian(60, 3)
    frame = pd.DataFrame(X, columns=["age", "debt", "income"])
    rng = np.random.RandomState(5)
    model = SPAM(l2=np.float64(0.1), random_state=rng).fit(frame, y == 1)
    twin = through_a_file(model, tmp_path)
    assert_array_equal(twin.feature_names_in_, model.feature_names_in_)
    assert twin.classes_.dtype == bool
    # The generator goes on where it stood.
    assert_same_bits(twin.fit(frame, y == 1), model.fit(frame, y == 1))


@pytest.mark.parametrize("cut", [0, 1, 8, 100, 0.5, -8, -1])
def test_a_file_cut_short(cut, tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    content = path.read_bytes()
    size = int(cut * len(content)) if isinstance(cut, float) else cut
    path.write_bytes(content[:size])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        aucmax.load(path)


def test_a_garbled_file(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.choice(8 * len(content), 300, replace=False):
        garbled = bytearray(content)
        garbled[at // 8] ^= 1 << at % 8
        path.write_bytes(garbled)
        with pytest.raises(ValueError, match="damaged") as caught:
            aucmax.load(path)
        assert str(path) in str(caught.value)


def test_a_garbled_file_without_a_checksum(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    edited(path, lambda header: None)
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    for at in rng.choice(header, 60, replace=False):
        garbled = bytearray(content)
        garbled[at] = rng.choice([0, 0x22, 0x7B, 0x39, 0xFF])
        path.write_bytes(garbled)
        try:
            model = aucmax.load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:  # a digit of a parameter, a letter of a name in no use: it must work
            assert np.isfinite(model.coef_).all()


def nested(depth):
    """Return what JSON can hold, one in the other."""
    value = 1
    for _ in range(depth):
        value = {"random_state": {"class": "Chain", "parameters": value}}
    return value


def edited(path, edit):
    """Change the header of the model file at ``path``; it has no checksum then."""
    with safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["aucmax"])
    edit(header)
    save_file(load_file(path), path, {"aucmax": json.dumps(header)})


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda header: header.update(format="other"), "not one of aucmax"),
        (lambda header: header.update(version=99), "version 99.*Upgrade"),
        (
            lambda header: header.update(version=1),
            "version 1 .*too old: train it again",
        ),
        (lambda header: header.update({"class": "os.system"}), "os.system"),
        (lambda header: header.update({"class": "Pipeline"}), "Pipeline"),
        (lambda header: header.pop("class"), "class"),
        (lambda header: header.pop("parameters"), "parameters"),
        (lambda header: header.pop("attributes"), "attributes"),
        (lambda header: header.pop("classes"), "classes"),
        (lambda header: header.pop("features"), "features"),
        (lambda header: header["attributes"].pop("n_features_in_"), "n_features_in_"),
        (lambda header: header["attributes"].update(n_features_in_=7), "coef"),
        (lambda header: header["attributes"].update(n_features_in_="x"), "x"),
        (lambda header: header["attributes"].update(n_features_in_=0), "no features"),
        (lambda header: header["parameters"].update(l2=-1.0), "'l2' parameter"),
        (lambda header: header["parameters"].update(schedule="fast"), "'schedule'"),
        (lambda header: header["parameters"].update(l3=1.0), "l3"),
        (lambda header: header["classes"].update(values=[1]), "labels"),
        (lambda header: header["classes"].update(values=[1, 1]), "not two different"),
        (lambda header: header["classes"].update(values=[[0], [1]]), "not two numbers"),
        (lambda header: header.update(features=[0, 1, 2, 3, 4, 5]), "not strings"),
        (lambda header: header["attributes"].update(n_iter_=0.5), "whole number"),
        (lambda header: header["attributes"].pop("n_iter_"), "n_iter_"),
        (lambda header: header.update(parameters=nested(300)), "damaged"),
        (lambda header: header["classes"].update(dtype="spam"), "spam"),
        (lambda header: header.update(classes=[0, 1]), "damaged"),
        (lambda header: header.update(features=["a", "b"]), "features"),
        (
            lambda header: header["parameters"].update(
                random_state={"RandomState": ["MT19937", [-1] * 624, 0, 0, 0.0]}
            ),
            "damaged",
        ),
    ],
)
def test_a_foreign_header(edit, text, tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    edited(path, lambda header: None)
    aucmax.load(path)  # the edit is what breaks it
    edited(path, edit)
    with pytest.raises(ValueError, match=text) as caught:
        aucmax.load(path)
    assert str(path) in str(caught.value)


def test_a_size_that_nobody_has(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(OAM(), *gaussian(30)).save(path)
    for size in (10**15, 10**30):
        edited(path, lambda header, n=size: header["parameters"].update(buffer_size=n))
        with pytest.raises(ValueError, match=re.escape(str(path))):
            aucmax.load(path)


def test_foreign_files(tmp_path):
    path = tmp_path / "model.aucmax"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not an aucmax model file"):
        aucmax.load(path)
    path.write_bytes(pickle.dumps({"coef": np.ones(3)}))
    with pytest.raises(ValueError, match="not an aucmax model file"):
        aucmax.load(path)
    save_file({"coef": np.ones((1, 3))}, path)
    with pytest.raises(ValueError, match="not one of aucmax"):
        aucmax.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        aucmax.load(tmp_path / "nowhere.aucmax")
    with pytest.raises(IsADirectoryError, match="folder"):
        aucmax.load(tmp_path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "model.aucmax"
    model = trained(SPAM(), *gaussian(30))
    model.save(path)
    before = path.read_bytes()
    model.partial_fit(*gaussian(30, seed=1))
    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:

            def fail(*_):
                raise OSError("disk full")

            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="disk full"):
                model.save(path)
        assert [file.name for file in tmp_path.iterdir()] == ["model.aucmax"]
        assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.save(tmp_path / "missing" / "model.aucmax")
    model.save(path)
    assert_same_bits(aucmax.load(path), model)


def mutations(tensors):
    """Yield what a file might say instead: names, and the tensors so changed."""
    for field in sorted(tensors):
        shapes = [tensors[field][..., np.newaxis], tensors[field].ravel()[:-1]]
        for k, other in enumerate(shapes):
            yield f"{field} of shape {k}", tensors | {field: other.copy()}
        flat = tensors[field].ravel()
        used = np.flatnonzero(flat)  # of a buffer that is mostly empty
        places = [*used[:1], slice(None), 0, -1, *used[-1:]]
        for value in (np.nan, np.inf, 1e300, -1.0, 1e9, 0.5):
            # What could be an index is tried everywhere, what is no number in two.
            some = None if abs(value) < 1e10 else 2
            for place in places[:some] if flat.size else ():
                changed = flat.copy()
                changed[place] = value
                changed = changed.reshape(tensors[field].shape)
                yield f"{field}[{place}] = {value}", tensors | {field: changed}
        if flat.size:  # the same row, feature or number, over and over
            changed = np.full_like(tensors[field], flat[used[0]] if used.size else 1.0)
            yield f"{field} all alike", tensors | {field: changed}


def mistrusted():
    """Return learners whose state is small, one of each kind."""
    small = {"buffer_size": 3, "max_iter": 2}
    kinds = [*PLAIN, CBR(covariance="diag"), OPAUC(rank=2), OAM(policy="reservoir")]
    # AUCStream is made of others, and tools/fuzz_models.py has it; the state of SAM and
    # ASAM is that of PSAM.
    kinds = [kind for kind in kinds if type(kind) not in (AUCStream, SAM, ASAM)]
    return [seeded(e, **small) for e in kinds if hasattr(e, "partial_fit")]


def use_mutants(folder, method):
    """Load what was tampered with and use it; say which one, in case of a crash."""
    path = Path(folder) / "model.aucmax"
    X, y = scattered(8, 4)
    X[X[:, 0] == 0.0, 0] = 0.1
    layouts = cycle([X, sparse.csr_array(X)])  # in turn: the state is what counts
    for model in mistrusted():
        getattr(clone(model), method)(X, y).save(path)
        with safe_open(path, framework="numpy") as file:
            metadata = {"aucmax": file.metadata()["aucmax"]}  # no checksum
        for what, tensors in mutations(load_file(path)):
            print(f"{type(model).__name__}, {method}: {what}", flush=True)
            save_file(tensors, path, metadata)
            try:
                mutant = aucmax.load(path)
            except ValueError:
                continue
            with np.errstate(all="ignore"):
                mutant.decision_function(X)
                with suppress(ValueError):  # it has diverged
                    mutant.partial_fit(next(layouts), y)


def test_tampered_files_do_not_crash(tmp_path):
    """What kernels use as an index is checked; Python would notice a wrong one."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "from test_contracts import use_mutants; use_mutants(*sys.argv[2:])"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(tmp_path), "partial_fit"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{last}: {done.stderr[-2000:]}"


def test_files_changed_at_random_do_not_crash():
    """A short run of the tool, its kernels as Python, which notices a wrong index."""
    tool = Path(__file__).parents[1] / "tools" / "fuzz_models.py"
    done = subprocess.run(
        [sys.executable, str(tool), "60"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 findings" in done.stdout


def test_recipes_with_odd_values(tmp_path):
    path = tmp_path / "model.aucmax"
    trained(SPAM(), *gaussian(30)).save(path)
    table = {
        **{"format": "csv", "dtype": "float64", "columns": ["a", "b", "y"]},
        **{"header": True, "numbers": ["a"], "categories": ["b"], "texts": []},
        **{"label": "y", "label_is_number": True, "weight": None, "delimiter": ","},
        **{"encode": "onehot", "hash_size": 8, "missing": "impute"},
        **{"means": [0.5], "values": [["u", "v"]]},
    }
    lines = {"format": "svmlight", "zero_based": False, "missing": "error"}
    lines["dtype"] = "float32"
    task = {"positive": [1.0], "negative": [0.0]}
    for good in (table, lines):
        recipe = {"input": good, "task": task, "training": {}}
        edited(path, lambda header, found=recipe: header.update(recipe=found))
        aucmax.load(path)
    odd = [
        *((table, {name: 7}) for name in table),
        *((table, {"means": means}) for means in ([], [1, 2], [np.nan], [10**400])),
        *((table, {"label": "a"}), (table, {"weight": "y"}), (table, {"values": []})),
        *((table, {"numbers": ["a", "a"]}), (table, {"hash_size": 1 << 40})),
        *((lines, {name: 7}) for name in lines),
    ]
    odd = [pair for pair in odd if pair[1] not in ({"means": []}, {"hash_size": 7})]
    for good, change in odd:
        recipe = {"input": good | change, "task": task}
        edited(path, lambda header, found=recipe: header.update(recipe=found))
        with pytest.raises(ValueError, match="damaged aucmax model file: "):
            aucmax.load(path)
    for recipe in (7, [], {}, {"input": lines}, {"input": lines, "task": 7}):
        edited(path, lambda header, found=recipe: header.update(recipe=found))
        with pytest.raises(ValueError, match="damaged aucmax model file: "):
            aucmax.load(path)


@plain
def test_only_what_is_fitted_can_be_saved(estimator, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        seeded(estimator).save(tmp_path / "model.aucmax")


@plain_way
def test_models_do_not_hold_on_to_their_input(estimator, method):
    for X, y in (gaussian(60, 4), gaussian(4, 60), gaussian(4, 1)):
        if refuses_to_cross_validate(estimator, X, y):
            continue
        for rows in (X, sparse.csr_array(X))[: 1 if X.shape[1] == 1 else 2]:
            model = trained(estimator, rows, y, method)
            expected = everything(model)
            memory = rows.data if sparse.issparse(rows) else rows
            state = arrays(model.state_) if hasattr(model, "state_") else {}
            for array in (*dump(model)[1].values(), *state.values()):
                assert not np.shares_memory(np.asarray(array), memory)
            memory[:] = 7.0
            for key, value in everything(model).items():
                assert_array_equal(value, expected[key])


@plain
def test_looking_changes_nothing(estimator, tmp_path):
    X, y = mixed(60)
    model = trained(estimator, X, y)
    expected = everything(model)
    model.decision_function(X)
    model.predict(sparse.csr_array(X))
    model.score(X, y)
    model.save(tmp_path / "model.aucmax")
    for key, value in everything(model).items():
        assert_array_equal(value, expected[key])


# 9. What is computed is what was meant

square = pytest.mark.parametrize(
    "estimator",
    [e for e in PLAIN if type(e).__name__ in SQUARE_LOSS],
    ids=lambda e: type(e).__name__,
)


def assert_minimum(estimator, X, y, l2, tolerance, weight=None, layout=np.asarray):
    model = seeded(estimator, l2=l2, **SQUARE_LOSS[type(estimator).__name__])
    model.fit(layout(X), y, sample_weight=weight)
    expected = closed_form(X, y, l2, weight)
    # Weights of features of any scale, in units of the score.
    error, size = (model.coef_[0] - expected) * X.std(axis=0), expected * X.std(axis=0)
    assert np.linalg.norm(error) < tolerance * np.linalg.norm(size)
    # What is left of the objective, as a share of all there was to gain.
    least = pairwise_loss(expected, X, y, l2, weight=weight)
    gap = pairwise_loss(model.coef_[0], X, y, l2, weight=weight) - least
    assert gap < 1e-3 * (1.0 - least)


# One layout each, since dense equals CSR to rounding: test_dense_equals_csr.
@pytest.mark.parametrize(
    ("l2", "layout"),
    [(1e-3, np.asarray), (0.1, sparse.csr_array), (1.0, np.asarray)],
    ids=["0.001-dense", "0.1-CSR", "1-dense"],
)
@square
def test_square_loss_reaches_the_closed_form(estimator, l2, layout):
    # Steps fall like 1/√t: after a million rows, what is left is below a percent.
    assert_minimum(estimator, *gaussian(300, 5), l2, 1e-2, layout=layout)


@pytest.mark.parametrize("l2", [1e-3, 0.1])
@square
def test_weighted_square_loss_reaches_the_closed_form(estimator, l2):
    X, y = gaussian(300, 5)
    weight = np.where(X[:, 1] > 0.0, 3.0, 0.3)
    assert_minimum(estimator, X, y, l2, 2e-2, weight)
    # The weights change the minimum by far more than the tolerance.
    plain, weighted = closed_form(X, y, l2), closed_form(X, y, l2, weight)
    assert np.linalg.norm(plain - weighted) > 0.1 * np.linalg.norm(plain)


@pytest.mark.parametrize(
    ("l2", "layout"),
    [(0.0, np.asarray), (1e-3, sparse.csr_array)],
    ids=["0-dense", "0.001-CSR"],
)
@square
def test_unscaled_square_loss_reaches_the_closed_form(estimator, l2, layout):
    X, y = scaled(300, 5, decades=1.0)
    assert_minimum(estimator, X, y, l2, 2e-2, layout=layout)


def states(folder):
    """Write down what every variant learns, compiled or not."""
    X, y = mixed(50)
    weight = np.random.default_rng(0).random(50) + 0.5
    weight[::9] = 0.0
    for k, estimator in enumerate(LINEAR):
        # One layout each: that layouts do not matter is tested above.
        ways = [("fit", np.asarray), ("partial_fit", sparse.csr_array)]
        if not hasattr(estimator, "partial_fit"):
            ways[1] = "fit", sparse.csr_array
        for method, layout in ways:
            # Few features make the proximal map a matter of 256 steps.
            model = seeded(estimator, max_iter=6, n_batches=5)
            if isinstance(estimator, CBR):  # a minute in Python otherwise
                model.set_params(max_iter=2, buffer_size=5)
            getattr(model, method)(layout(X), y, sample_weight=weight)
            file = f"{k}-{layout.__name__}-{method}.npz"
            np.savez(Path(folder) / file, **everything(model))


def one_feature():
    """Check that dense equals CSR for one feature, in Python.

    Arrays with one feature have another layout, to Numba: it would compile them anew.
    """
    X, y = gaussian(40, 1)
    X[::5] = 0.0
    short = {"max_iter": 2, "buffer_size": 5, "n_batches": 5}
    for estimator, method in ways(LINEAR):
        dense = trained(estimator, X, y, method, **short)
        found = trained(estimator, sparse.csr_array(X), y, method, **short)
        assert_close(found, dense)


@pytest.fixture(scope="module")
def python_states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("python")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); "
        "import test_contracts as tests; tests.states(sys.argv[2]); tests.one_feature()"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(folder)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=True,
    )
    return folder


@pytest.fixture(scope="module")
def compiled_states(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    states(folder)
    return folder


@linear
def test_compiled_is_python(estimator, python_states, compiled_states):
    files = sorted(python_states.glob(f"{LINEAR.index(estimator)}-*.npz"))
    assert len(files) >= 2
    for file in files:
        expected = np.load(file)
        found = np.load(compiled_states / file.name)
        assert found.keys() == expected.keys()
        for key in expected:
            for a, b in zip(
                slots(key, found[key]), slots(key, expected[key]), strict=True
            ):
                atol = 1e-9 * max(np.abs(b).max(), 1e-6)
                message = f"{file.name}: {key}"
                assert_allclose(a, b, rtol=1e-9, atol=atol, err_msg=message)


@plain
def test_probabilities_are_there_or_it_is_said_how_to_get_them(estimator):
    X, y = gaussian(80, 6)
    model = trained(estimator, X, y)
    if hasattr(model, "predict_proba"):
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    else:
        with pytest.raises(AttributeError) as raised:
            _ = model.predict_proba
        assert "CalibratedClassifierCV" in str(raised.value.__cause__)
