"""AUC, its statistics and the ROC curve: plain functions of (y, score)."""

from aucmax.metrics.area import auc
from aucmax.metrics.curve import ROCCurve, roc_curve
from aucmax.metrics.delong import AUCInterval, AUCTest, auc_interval, auc_test

__all__ = [
    "AUCInterval",
    "AUCTest",
    "ROCCurve",
    "auc",
    "auc_interval",
    "auc_test",
    "roc_curve",
]
