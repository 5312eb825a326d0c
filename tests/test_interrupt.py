"""Ctrl-C in the middle of a kernel: no crash, and a state that is whole."""

import subprocess
import sys

import pytest

# Of each kind one: sums by feature, by pairs of features, and a buffer of rows. (That
# kernels return nothing, which could crash, is tested for all: test_few_signatures.)
NAMES = ["SPAM", "OPAUC", "CBR"]
_CODE = """
import os, signal, sys, threading
import numpy as np
import aucmax
from aucmax.online.engine.feature_table import ROWS
from aucmax.storage.state import arrays

# A shell's background jobs have interrupts switched off.
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
X = rng.standard_normal((600_000, 20))
y = X[:, 0] > 1
for name in sys.argv[1:]:
    learner = getattr(aucmax, name)
    model = learner().partial_fit(X[:100], y[:100])
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while True:
            model.partial_fit(X, y)
    except KeyboardInterrupt:
        pass
    state = model.state_
    rows = state.table.stats if hasattr(state, "table") else state.z
    rows = int(rows[ROWS]) - 100
    again = learner().partial_fit(X[:100], y[:100])
    for start in range(0, rows, len(y)):
        part = slice(0, min(len(y), rows - start))
        again.partial_fit(X[part], y[part])
    for key, mine in arrays(model.state_).items():
        np.testing.assert_array_equal(mine, arrays(again.state_)[key])
    print(name, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_an_interrupt_leaves_the_state_after_some_of_the_rows():
    done = subprocess.run(
        [sys.executable, "-c", _CODE, *NAMES],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}: {done.stderr}"
    assert done.stdout.split() == NAMES
