"""How long the first use of each estimator takes, with nothing compiled yet.

``python benchmarks/bench_compile.py``: for each estimator a new process with an empty
cache fits 60 rows twice; the first fit less the second is what compiling took. Dense
rows, then sparse ones in the same process, then the same as a stream.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

import aucmax
from bench import Row, main

_CHILD = """
import sys, time, warnings
import numpy as np
from scipy import sparse
import aucmax
warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((60, 5))
y = np.arange(60) % 2
estimator = getattr(aucmax, sys.argv[1])
def seconds(method, X):
    model = estimator()
    start = time.perf_counter()
    getattr(model, method)(X, y)
    return time.perf_counter() - start
for method in ("fit", "partial_fit"):
    for layout in (X, sparse.csr_array(X)):
        known = hasattr(estimator(), method)
        print(seconds(method, layout) - seconds(method, layout) if known else "nan")
"""


def run(repeat: int) -> list[Row]:
    """Return the least of ``repeat`` times of each."""
    columns = ("fit, dense", "fit, CSR too", "stream, dense", "stream, CSR too")
    rows: list[Row] = []
    for name in aucmax.ESTIMATORS:
        tries = []
        for _ in range(repeat):
            with TemporaryDirectory() as cache:
                done = subprocess.run(
                    [sys.executable, "-c", _CHILD, name],
                    env={"PATH": "", "NUMBA_CACHE_DIR": cache},
                    capture_output=True,
                    check=True,
                    text=True,
                )
            tries.append([float(line) for line in done.stdout.split()])
        least = [min(times) for times in zip(*tries, strict=True)]
        rows.append({"data": name} | dict(zip(columns, least, strict=True)))
    return rows


if __name__ == "__main__":
    main("Seconds of compiling at first use", run, repeat=1)
