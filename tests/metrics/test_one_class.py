"""Rows of one class: measures are NaN with a warning, curves are errors."""

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning

from aucmax import metrics

MEASURES = {
    "auc": {},
    "auc_interval": {},
    "average_precision": {},
    "average_precision_interval": {},
    "best_accuracy": {},
    "best_f_score": {},
    "brier_score": {},
    "calibration_error": {},
    "f_score": {"threshold": 0.5},
    "fpr_at": {"tpr": 0.5},
    "ks_statistic": {},
    "lift_area": {},
    "partial_auc": {"max_fpr": 0.5},
    "partial_auc_interval": {"max_fpr": 0.5},
    "tpr_at": {"fpr": 0.5},
}
CURVES = ("calibration_curve", "cost_curve", "net_benefit", "roc_band", "roc_hull")


@pytest.mark.parametrize("name", MEASURES)
def test_measures_are_nan(name, recwarn):
    measure = getattr(metrics, name)
    with pytest.warns(
        UndefinedMetricWarning, match=f"{name} is NaN: y holds one class"
    ):
        found = measure([1, 1, 1], [0.1, 0.5, 0.5], **MEASURES[name])
    assert np.isnan(found).all()
    assert len(recwarn) == 0  # one warning, which was caught
    weight = [0.0, 1.0, 0.0]
    with pytest.warns(UndefinedMetricWarning, match="sample_weight is zero at all 2"):
        found = measure(
            [1, 0, 1], [0.1, 0.5, 0.5], sample_weight=weight, **MEASURES[name]
        )
    assert np.isnan(found).all()


def test_other_measures_are_nan():
    y, a, b = [0, 0], [0.1, 0.2], [0.2, 0.1]
    with pytest.warns(UndefinedMetricWarning, match="auc_test is NaN"):
        assert np.isnan(metrics.auc_test(y, a, b, max_fpr=0.5)).all()
    with pytest.warns(UndefinedMetricWarning, match="threshold_interval is NaN"):
        assert np.isnan(metrics.threshold_interval(y, a, fpr=0.5)).all()
    with pytest.warns(UndefinedMetricWarning, match="auc_test_unpaired is NaN"):
        assert np.isnan(metrics.auc_test_unpaired([0, 1], a, y, b)).all()


@pytest.mark.parametrize("name", CURVES)
def test_curves_are_errors(name):
    with pytest.raises(ValueError, match="y holds one class only"):
        getattr(metrics, name)([0, 0, 0], [0.1, 0.5, 0.5])
