"""Is ``core/engine/tile.py`` worth its code? CBR with it, and with plain loops.

``python benchmarks/bench_tile.py``: each in a process of its own, compiled anew; the
plain loops are what Numba makes of the obvious code.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

from bench import Row, main

_CHILD = """
import sys, time
import numpy as np
from numba import njit
from aucmax.core import confidence
from aucmax.core.jit import vectorised

@vectorised
def plain(K, at, length, rows, c, first, V, r, start, stop):
    for q in range(rows):
        out = K[at + q * length : at + q * length + stop - start]
        for h in range(r):
            factor, v = c[h, first + q], V[h, start:stop]
            for k in range(out.shape[0]):
                out[k] += factor * v[k]

if sys.argv[1] == "plain":
    confidence.add_products = plain
from aucmax import CBR
rng = np.random.default_rng(0)
for d in (30, 100, 300):
    X = rng.standard_normal((3000, d))
    y = X[:, 0] + rng.standard_normal(3000) > 1
    CBR(max_iter=1).fit(X[:50], y[:50])
    times = []
    for _ in range(int(sys.argv[2])):
        start = time.perf_counter()
        CBR(max_iter=1, random_state=0).fit(X, y)
        times.append(time.perf_counter() - start)
    print(min(times))
"""


def run(repeat: int) -> list[Row]:
    """Return the best times of both, for several widths."""
    times = {}
    for kind in ("tiles", "plain"):
        with TemporaryDirectory() as cache:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, kind, str(repeat)],
                env={"PATH": "", "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                check=True,
                text=True,
            )
        times[kind] = [float(line) for line in done.stdout.split()]
    return [
        {"data": f"3000 x {d}", "tiles": tiles, "plain": plain, "ratio": plain / tiles}
        for d, tiles, plain in zip((30, 100, 300), *times.values(), strict=True)
    ]


if __name__ == "__main__":
    main("Seconds of a pass of CBR, buffers of 50", run, repeat=3)
