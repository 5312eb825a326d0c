"""Time what a user waits for first: imports, and the first fit, cold and warm.

``python benchmarks/bench_start.py``. Every number is the wall time of a new process.
"""

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from bench import Row, main

_FIT = """
import numpy as np
from aucmax import SPAM
X = np.random.default_rng(0).standard_normal((500, 10))
SPAM().fit(X, X[:, 0] > 0)
"""
_JOBS = {
    "python alone": "pass",
    "import aucmax": "import aucmax",
    "import sklearn.linear_model": "import sklearn.linear_model",
    "from aucmax import SPAM": "from aucmax import SPAM",
    "first fit, warm cache": _FIT,
}


def run(repeat: int) -> list[Row]:
    """Return the seconds of each."""
    with tempfile.TemporaryDirectory() as cache:
        _seconds(_FIT, cache)
        rows: list[Row] = [
            {"data": name, "seconds": min(_seconds(job, cache) for _ in range(repeat))}
            for name, job in _JOBS.items()
        ]
    cold = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_seconds(_FIT, cache))
    return [*rows, {"data": "first fit, cold cache", "seconds": min(cold)}]


def _seconds(code: str, cache: str) -> float:
    start = perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    )
    return perf_counter() - start


if __name__ == "__main__":
    main("First start", run, repeat=3)
