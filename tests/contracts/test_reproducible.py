"""Contract: the same input and seed give the same bits, and nothing else changes."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_limits

from aucmax import AUCClassifier, KernelAUCCV, KernelBAM
from aucmax.storage.state import arrays
from contracts.estimators import (
    NARROW,
    assert_same_bits,
    every,
    learned_arrays,
    plain,
    plain_way,
    refuses_folds,
    seeded,
    trained,
)
from contracts.matrices import unsorted_csr
from helpers.data import gaussian, mixed
from helpers.states import dump


@every
def test_same_seed_same_bits(estimator):
    X, y = mixed(100)
    expected = trained(estimator, X, y)
    assert_same_bits(trained(estimator, X, y), expected)
    # ``fit`` discards what was learnt before.
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
    # The trees of AUCStream are random in any order of the rows.
    fixed = [seeded(estimator, shuffle=False, nonlinear=False) for _ in range(2)]
    fixed[1].set_params(random_state=1)
    assert_same_bits(fixed[0].fit(X, y), fixed[1].fit(X, y))


@plain
def test_threads_do_not_matter(estimator, monkeypatch):
    X, y = mixed(2000)
    monkeypatch.setattr(
        "aucmax.base.class_moments._BLOCK_BYTES", 1 << 13
    )  # many blocks
    monkeypatch.setattr("aucmax.core.threads.cpu_count", lambda: 1)
    alone = trained(estimator, X, y, max_iter=1)
    for cpus in (2, 7, None):
        monkeypatch.setattr("aucmax.core.threads.cpu_count", lambda cpus=cpus: cpus)
        assert_same_bits(trained(estimator, X, y, max_iter=1), alone)


@plain_way
def test_blas_threads_do_not_matter(estimator, method):
    rng = np.random.default_rng(0)
    # BLAS splits products of vectors among threads from 10 000 numbers on.
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
def test_parameters_and_inputs_are_unchanged(estimator, method):
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


@plain_way
def test_models_share_no_memory_with_their_input(estimator, method):
    for X, y in (gaussian(60, 4), gaussian(4, 60), gaussian(4, 1)):
        if refuses_folds(estimator, X, y):
            continue
        for rows in (X, sparse.csr_array(X))[: 1 if X.shape[1] == 1 else 2]:
            model = trained(estimator, rows, y, method)
            expected = learned_arrays(model)
            memory = rows.data if sparse.issparse(rows) else rows
            state = arrays(model.state_) if hasattr(model, "state_") else {}
            for array in (*dump(model)[1].values(), *state.values()):
                assert not np.shares_memory(np.asarray(array), memory)
            memory[:] = 7.0
            for key, value in learned_arrays(model).items():
                assert_array_equal(value, expected[key])


@plain
def test_scoring_and_saving_change_nothing(estimator, tmp_path):
    X, y = mixed(60)
    model = trained(estimator, X, y)
    expected = learned_arrays(model)
    model.decision_function(X)
    model.predict(sparse.csr_array(X))
    model.score(X, y)
    model.save(tmp_path / "model.aucmax")
    for key, value in learned_arrays(model).items():
        assert_array_equal(value, expected[key])
