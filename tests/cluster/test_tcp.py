"""A scheduler and workers as separate processes, over TCP."""

import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from helpers.parts import apart, blocks, table

pytest.importorskip("dask", reason="Dask is not installed: pip install aucmax[cluster]")

from dask.delayed import delayed
from distributed import Client

from aucmax import BAM, LeastSquaresAUC, cluster

pytestmark = pytest.mark.skipif(
    "AUCMAX_TEST_CLUSTER" not in os.environ,
    reason="AUCMAX_TEST_CLUSTER=1 python -m pytest tests/cluster starts processes",
)


@contextmanager
def started(*arguments):
    """Run a Dask command until the context ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "50"},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def tcp(folder, preload=()):
    """Yield a client of a scheduler with two workers."""
    here = "--host", "127.0.0.1", "--scheduler-file", folder / "scheduler.json"
    worker = "worker", "--nthreads", "1", "--no-dashboard", *here, "--local-directory"
    with (
        started("scheduler", "--port", "0", "--no-dashboard", *here),
        started(*worker, folder / "one"),
        started(*worker, folder / "two", *preload),
        Client(scheduler_file=str(folder / "scheduler.json"), timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


def test_workers_over_tcp(tmp_path):
    X, y = table(3000)
    alone = BAM().fit(X, y)
    with tcp(tmp_path) as client:
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        parts = [[delayed(b) for b in some] for some in blocks(X, y, [900, 901])]
        assert apart(cluster.fit(BAM(), *parts).coef_, alone.coef_) < 1e-9


def test_a_worker_killed_at_a_random_moment(tmp_path):
    X, y = table(20_000)
    cuts = list(range(2000, 20_000, 2000))
    parts = [[delayed(b) for b in some] for some in blocks(X, y, cuts)]
    model = BAM(loss="logistic", tol=1e-8)
    with tcp(tmp_path) as client:
        whole = cluster.fit(model, *parts).coef_
        victim = random.choice(list(client.run(os.getpid).values()))
        timer = threading.Timer(
            random.uniform(0.0, 1.0), os.kill, (victim, signal.SIGKILL)
        )
        timer.start()
        found = cluster.fit(BAM(loss="logistic", tol=1e-8), *parts).coef_
        timer.join()
        assert np.array_equal(found, whole)


def test_a_worker_without_aucmax(tmp_path):
    preload = Path(tmp_path) / "without.py"
    preload.write_text("import sys\nsys.modules['aucmax'] = None\n")
    X, y = table()
    with (
        tcp(tmp_path, ("--preload", preload)),
        pytest.raises(RuntimeError, match=r"has no aucmax .*pip install"),
    ):
        cluster.fit(LeastSquaresAUC(), *blocks(X, y, [100]))
