"""Tests of one algorithm stay in one process, so that its kernels compile once."""

from pathlib import Path

import pytest

import aucmax


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items):
    for item in items:
        estimator = getattr(item, "callspec", None) and item.callspec.params.get(
            "estimator"
        )
        name = type(estimator).__name__ if estimator is not None else None
        if name not in aucmax.ESTIMATORS:
            stem = Path(item.path).stem.removeprefix("test_")
            names = [key for key in aucmax.ESTIMATORS if key.lower().startswith(stem)]
            name = min(names, key=len, default=None)
        if item.name.startswith("test_compiled_is_python"):
            name = "python"  # what they compare with is made once
        if item.name.startswith("test_demo"):
            name = "demo"
        if name is not None:
            item.add_marker(pytest.mark.xdist_group(name))
