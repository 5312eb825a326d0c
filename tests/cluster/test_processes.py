"""Tests that need two worker processes."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from helpers.parts import apart, blocks, table

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

import dask
import distributed
from dask.delayed import delayed

import aucmax
from aucmax import BAM, LeastSquaresAUC, LeastSquaresAUCCV, cluster, metrics

pytestmark = pytest.mark.skipif(
    "AUCMAX_TEST_CLUSTER" not in os.environ,
    reason="AUCMAX_TEST_CLUSTER=1 python -m pytest tests/cluster starts processes",
)


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set(
            {
                "distributed.worker.memory.rebalance.measure": "managed",
                "distributed.scheduler.allowed-failures": 20,
            }
        ),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _on_the_cluster(client):
    with dask.config.set(scheduler=client):
        yield


def parts(n=4000, pieces=5):
    X, y = table(n)
    ends = np.linspace(0, n, pieces + 1).astype(int)[1:-1]
    found = blocks(X, y, ends)
    return X, y, [[delayed(some) for some in column] for column in found]


def test_the_same_models():
    X, y, rows = parts()
    for model in (LeastSquaresAUC(), LeastSquaresAUCCV(10), BAM()):
        found = cluster.fit(model, *rows).coef_
        again = type(model)(**model.get_params())
        with dask.config.set(scheduler="sync"):
            alone = cluster.fit(again, *rows).coef_
        assert np.array_equal(found, alone)
    scores = cluster.decision_function(model, rows[0])
    assert cluster.auc(rows[1], scores) == model.score(X, y)
    interval = metrics.auc_interval(y, model.decision_function(X))
    np.testing.assert_allclose(
        cluster.auc_interval(rows[1], scores), interval, rtol=1e-12
    )


def _pretend(version):
    aucmax.__version__ = version


def test_other_versions_on_workers(client):
    client.wait_for_workers(2, timeout=60)
    _, _, rows = parts(200, 2)
    worker = next(iter(client.scheduler_info()["workers"]))
    client.run(_pretend, "0.0.7", workers=[worker])
    try:
        with pytest.raises(RuntimeError, match=r"has aucmax 0\.0\.7"):
            cluster.fit(LeastSquaresAUC(), *rows)
    finally:
        client.run(_pretend, aucmax.__version__, workers=[worker])
    assert apart(cluster.fit(LeastSquaresAUC(), *rows).coef_, np.ones(1)) > 0.0


def test_errors_of_workers_reach_the_client():
    _, _, (X, y) = parts(200, 2)
    with pytest.raises(ValueError, match="Partition 1: Input X contains NaN"):
        cluster.fit(LeastSquaresAUC(), [X[0], delayed(_spoilt)(X[1])], y)


def _spoilt(X):
    return X * np.nan


def test_dask_is_not_imported_without_need():
    code = "import aucmax, sys; assert 'dask' not in sys.modules; aucmax.BAM"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_dask_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "import aucmax\n"
        "try: aucmax.cluster\n"
        "except ImportError as error: print(error)\n"
    )
    run = [sys.executable, "-c", code]
    said = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert "pip install 'aucmax[cluster]'" in said


def _process():
    return os.getpid()


def test_a_killed_worker_changes_no_bit(client):
    client.wait_for_workers(2, timeout=60)
    _, _, rows = parts()
    with dask.config.set(scheduler="sync"):
        alone = cluster.fit(BAM(loss="logistic"), *rows).coef_
    victim = next(iter(client.run(_process).values()))
    passes = []

    def watch(number):
        passes.append(number)
        if number == 4:  # in the middle, when it has rows
            os.kill(victim, signal.SIGKILL)

    found = cluster.fit(BAM(loss="logistic"), *rows, watch=watch).coef_
    assert len(passes) > 4
    assert np.array_equal(found, alone)
