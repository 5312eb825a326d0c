"""AUC, confidence intervals, curves and thresholds: functions of (y, score)."""

from aucmax.metrics.area import (
    auc,
    partial_auc,
    partial_auc_interval,
)
from aucmax.metrics.calibration import (
    BrierScore,
    CalibrationCurve,
    CalibrationLine,
    brier_score,
    calibration_curve,
    calibration_error,
    calibration_line,
)
from aucmax.metrics.comparison import (
    AUCTest,
    auc_test,
    auc_test_unpaired,
)
from aucmax.metrics.costs import (
    CostCurve,
    ROCHull,
    cost_curve,
    roc_hull,
)
from aucmax.metrics.curves import (
    ROCCurve,
    roc_curve,
)
from aucmax.metrics.decisions import (
    BestThreshold,
    Confusion,
    DecisionCurve,
    best_accuracy,
    best_f_score,
    confusion_at,
    f_score,
    ks_statistic,
    lift_area,
    net_benefit,
)
from aucmax.metrics.delong import (
    AUCInterval,
    auc_interval,
    cv_auc_interval,
)
from aucmax.metrics.groups import (
    CrossAUC,
    GroupAUC,
    GroupAUCs,
    auc_by_group,
    cross_auc,
)
from aucmax.metrics.intervals import (
    Interval,
)
from aucmax.metrics.monitoring import (
    StabilityIndex,
    expected_auc,
    stability_index,
)
from aucmax.metrics.multiclass import (
    multiclass_auc,
)
from aucmax.metrics.operating_point import (
    OperatingPoint,
    operating_point,
)
from aucmax.metrics.power import (
    SampleSize,
    auc_power,
    auc_sample_size,
    auc_variance,
)
from aucmax.metrics.precision_recall import (
    average_precision,
    average_precision_interval,
)
from aucmax.metrics.rates import (
    ROCBand,
    fpr_at,
    roc_band,
    threshold_interval,
    tpr_at,
)
from aucmax.metrics.streaming import (
    AUCBounds,
    StreamingAUC,
)
from aucmax.metrics.top import (
    LiftCurve,
    PrecisionInterval,
    breakeven,
    lift_at,
    lift_curve,
    precision_at,
    precision_interval,
)

__all__ = [
    "AUCBounds",
    "AUCInterval",
    "AUCTest",
    "BestThreshold",
    "BrierScore",
    "CalibrationCurve",
    "CalibrationLine",
    "Confusion",
    "CostCurve",
    "CrossAUC",
    "DecisionCurve",
    "GroupAUC",
    "GroupAUCs",
    "Interval",
    "LiftCurve",
    "OperatingPoint",
    "PrecisionInterval",
    "ROCBand",
    "ROCCurve",
    "ROCHull",
    "SampleSize",
    "StabilityIndex",
    "StreamingAUC",
    "auc",
    "auc_by_group",
    "auc_interval",
    "auc_power",
    "auc_sample_size",
    "auc_test",
    "auc_test_unpaired",
    "auc_variance",
    "average_precision",
    "average_precision_interval",
    "best_accuracy",
    "best_f_score",
    "breakeven",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "calibration_line",
    "confusion_at",
    "cost_curve",
    "cross_auc",
    "cv_auc_interval",
    "expected_auc",
    "f_score",
    "fpr_at",
    "ks_statistic",
    "lift_area",
    "lift_at",
    "lift_curve",
    "multiclass_auc",
    "net_benefit",
    "operating_point",
    "partial_auc",
    "partial_auc_interval",
    "precision_at",
    "precision_interval",
    "roc_band",
    "roc_curve",
    "roc_hull",
    "stability_index",
    "threshold_interval",
    "tpr_at",
]
