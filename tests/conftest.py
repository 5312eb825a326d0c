"""Sort tests by estimator, so that each kernel is compiled by one process.

With ``--dist worksteal`` (see pyproject.toml) each process of pytest-xdist starts with
consecutive tests and takes some from the end of another's queue when it is done. In
this order two processes hardly ever compile the same kernel.
"""

import gc
import os
from pathlib import Path

import pytest

import aucmax

# Set before NumPy is imported: processes that share two cores must not use two threads
# each. Subprocesses of tests inherit it.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Compiling creates many long-lived objects; rarer collections save a tenth of the time.
gc.set_threshold(200_000, 50, 50)

pytest.register_assert_rewrite("contracts.estimators", "helpers")

ORDER = [*aucmax.ESTIMATORS, "python", "demo", ""]
# Folders and files whose tests are all smoke tests: they index bytes or depend on other
# packages.
SMOKE = {"io", "tables", "metrics", "losses", "test_cli.py", "test_info.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ORDER.index(group(item)))  # stable
    for item in items:
        if SMOKE & set(item.path.parts):
            item.add_marker("smoke")


def group(item):
    """Return the estimator of a test, by its parameters or its module."""
    if item.name.startswith("test_compiled_is_python"):
        return "python"  # they share the uncompiled reference run
    if item.name.startswith("test_demo"):
        return "demo"
    call = getattr(item, "callspec", None)
    params = call.params if call else {}
    estimator = type(params.get("estimator")).__name__
    if estimator in aucmax.ESTIMATORS:
        return estimator
    prefix = str(params.get("name", "")).lower()
    names = [key for key in aucmax.ESTIMATORS if prefix.startswith(key.lower())]
    if names:
        return max(names, key=len)
    module = params.get("module", Path(item.path).stem.removeprefix("test_"))
    stem = str(module).rpartition(".")[2]
    names = [key for key in aucmax.ESTIMATORS if key.lower().startswith(stem)]
    return min(names, key=len, default="")
