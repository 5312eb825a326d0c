"""AUC, confidence intervals, curves and thresholds: functions of (y, score)."""

from aucmax.metrics.area import auc, partial_auc
from aucmax.metrics.curves import ROCCurve, roc_curve
from aucmax.metrics.delong import (
    AUCInterval,
    AUCTest,
    auc_interval,
    auc_test,
    cv_auc_interval,
)
from aucmax.metrics.operating_point import OperatingPoint, operating_point
from aucmax.metrics.top import (
    LiftCurve,
    PrecisionInterval,
    average_precision,
    breakeven,
    lift_at,
    lift_curve,
    precision_at,
    precision_interval,
)

__all__ = [
    "AUCInterval",
    "AUCTest",
    "LiftCurve",
    "OperatingPoint",
    "PrecisionInterval",
    "ROCCurve",
    "auc",
    "auc_interval",
    "auc_test",
    "average_precision",
    "breakeven",
    "cv_auc_interval",
    "lift_at",
    "lift_curve",
    "operating_point",
    "partial_auc",
    "precision_at",
    "precision_interval",
    "roc_curve",
]
