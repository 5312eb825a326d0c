"""A user's program, type-checked strictly by tests/test_packaging.py; never run."""

from pathlib import Path

import numpy as np

import aucmax
from aucmax import AUCClassifier, AUCStream, metrics, report, thresholds
from aucmax.metrics import AUCInterval, AUCTest
from aucmax.thresholds import Threshold

X = np.zeros((10, 2))
y = np.arange(10) % 2
model: AUCClassifier = AUCClassifier(goal="auc", random_state=0)
stream = AUCStream(half_life=100.0)
scores = np.arange(10.0)

interval: AUCInterval = metrics.auc_interval(y, scores)
low: float = interval.low
test: AUCTest = metrics.auc_test(y, scores, -scores)
p: float = test.pvalue
threshold: Threshold = thresholds.choose(y, scores, "recall>=0.5")
report.html(y, {"model": scores}, Path("report.html"))
version: str = aucmax.__version__
