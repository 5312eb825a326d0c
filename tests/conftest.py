"""Tests of one algorithm follow each other, so that one process compiles its kernels.

pytest-xdist deals tests out in runs. (Its groups would say it better, but do nothing
with the latest pytest.)
"""

from pathlib import Path

import pytest

import aucmax

ORDER = [*aucmax.ESTIMATORS, "python", "demo", ""]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: ORDER.index(group(item)))  # stable


def group(item):
    if item.name.startswith("test_compiled_is_python"):
        return "python"  # what they compare with is made once
    if item.name.startswith("test_demo"):
        return "demo"
    call = getattr(item, "callspec", None)
    name = type(call.params.get("estimator")).__name__ if call else ""
    if name in aucmax.ESTIMATORS:
        return name
    stem = Path(item.path).stem.removeprefix("test_")
    names = [key for key in aucmax.ESTIMATORS if key.lower().startswith(stem)]
    return min(names, key=len, default="")
