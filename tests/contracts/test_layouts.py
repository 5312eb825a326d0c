"""Contract: results do not depend on the memory layout of X, dense or sparse."""

import pickle
import sys

import numpy as np
import pytest
from numba import typeof
from scipy import sparse
from scipy.stats import spearmanr

from aucmax import SPAM, AUCStream, UniExp
from aucmax.online.base import BatchAUC, OnlineAUC
from contracts.estimators import (
    as_id,
    assert_close,
    assert_same_bits,
    auc_of,
    every_way,
    one_of_each_fit,
    plain,
    plain_linear,
    plain_way,
    seeded,
    trained,
    with_methods,
)
from contracts.matrices import DENSE, SPARSE, mapped, stored_zeros
from helpers.data import constant, gaussian, mixed, scaled, scattered


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
    # Dense rows exceed the processor's cache, sparse rows do not: both must be visited
    # in the same order.
    X, y = scattered(9000, 60, density=0.1)
    assert X.nbytes > 1 << 22
    dense = trained(estimator, X, y, max_iter=1)
    csr = sparse.csr_array(X)
    assert csr.data.nbytes + csr.indices.nbytes < 1 << 22
    # Rounding errors of 9000 steps.
    assert_close(trained(estimator, csr, y, max_iter=1), dense, 1e-9)


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
    """Kernels compile for two layouts, two float types and two kinds of statistics.

    Signatures are recorded and run in float64: compiling them all takes a minute.
    """
    if not isinstance(estimator, OnlineAUC | BatchAUC):
        pytest.skip("no kernel goes over the rows")
    signatures = {}

    def recording(kernel):
        def record(X, *others):
            types = tuple(typeof(argument) for argument in (X, *others))
            signatures.setdefault(kernel, set()).add(types)
            if isinstance(X, np.ndarray):
                result = kernel(X.astype(float), *others)
            else:
                result = kernel(type(X)(X[0].astype(float), *X[1:]), *others)
            assert result is None  # else Ctrl-C could crash the interpreter

        return record

    for module_name, module in [*sys.modules.items()]:
        if module_name.startswith("aucmax."):
            for kernel in ("update", "learn_rows"):
                if hasattr(module, kernel):
                    monkeypatch.setattr(
                        module, kernel, recording(getattr(module, kernel))
                    )
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
    counts = {kernel.__name__: len(types) for kernel, types in signatures.items()}
    assert all(count <= 8 for count in counts.values()), f"too many: {counts}"


@plain
def test_float32_ranks_alike(estimator):
    X, y = scaled(300)
    X = X.astype(np.float32)
    single = trained(estimator, X, y)
    double = trained(estimator, X.astype(np.float64), y)
    # The values are equal and sums are float64, so the scores agree.
    a, b = single.decision_function(X), double.decision_function(X)
    assert spearmanr(a, b).statistic > 0.9999


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        *with_methods([UniExp()]),
        *((e, "fit") for e in one_of_each_fit() if not isinstance(e, SPAM | AUCStream)),
    ],
    ids=as_id,
)
def test_float32_in_any_layout(estimator, method):
    """One estimator is enough for the online learners: all read rows by core/rows.py.

    UniExp shares this code with SPAM and AUCStream, and compiles fastest.
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
    assert abs(auc_of(single, X, y) - auc_of(double, X, y)) < 1e-3
