"""Tests of one algorithm follow each other, so that one process compiles its kernels.

With ``--dist worksteal`` (see pyproject.toml) each process of pytest-xdist begins with
a run of tests of its own, and takes some off the end of another's when it is done. So
in this order two processes hardly ever compile the same kernel.
"""

import gc
import os
from pathlib import Path

import pytest

import aucmax

# Before NumPy is there: two processes whose products are shared out to two threads each
# wait for one another. Processes that tests start inherit it.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# To compile makes many objects that stay: not to look through them again and again
# saves a tenth of the time.
gc.set_threshold(200_000, 50, 50)

ORDER = [*aucmax.ESTIMATORS, "python", "demo", ""]
# Folders and files that belong to the smoke tests as they are: they index bytes, or
# lean on other packages.
SMOKE = {"io", "tables", "metrics", "losses", "test_cli.py", "test_info.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ORDER.index(group(item)))  # stable
    for item in items:
        if SMOKE & set(item.path.parts):
            item.add_marker("smoke")


def group(item):
    if item.name.startswith("test_compiled_is_python"):
        return "python"  # what they compare with is made once
    if item.name.startswith("test_demo"):
        return "demo"
    call = getattr(item, "callspec", None)
    params = call.params if call else {}
    name = type(params.get("estimator")).__name__
    if name in aucmax.ESTIMATORS:
        return name
    called = str(params.get("name", "")).lower()
    names = [key for key in aucmax.ESTIMATORS if called.startswith(key.lower())]
    if names:
        return max(names, key=len)
    module = params.get("module", Path(item.path).stem.removeprefix("test_"))
    stem = str(module).rpartition(".")[2]
    names = [key for key in aucmax.ESTIMATORS if key.lower().startswith(stem)]
    return min(names, key=len, default="")
