"""Shorter settings for estimators that fit many models."""

from functools import partial

import pytest

from aucmax import BAMCV


@pytest.fixture(autouse=True)
def shorter_kernel_search(monkeypatch):
    """Use one round of folds and a short path in KernelAUCCV.

    tests/kernel/test_kernel_cv.py runs it with the default values.
    """
    monkeypatch.setattr("aucmax.kernel.kernel_cv._REPEATS", 1)
    monkeypatch.setattr("aucmax.kernel.kernel_cv.BAMCV", partial(BAMCV, l2s=4))
