"""Values of R's pROC 1.18; data/pROC.R computes them from data/pROC_rows.csv.

The rows are simulated: correlated normal scores a and b of 120 rows, and three columns
of scores of three classes, rounded to one decimal, so that some are tied.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from aucmax import metrics

FOLDER = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def rows():
    return np.genfromtxt(FOLDER / "pROC_rows.csv", delimiter=",", names=True)


@pytest.fixture(scope="module")
def expected():
    with open(FOLDER / "pROC_values.csv", newline="") as lines:
        values = {row["name"]: float(row["value"]) for row in csv.DictReader(lines)}
    return lambda *names: pytest.approx([values[name] for name in names], abs=1e-9)


def test_auc_and_delongs_interval(rows, expected):
    a, b = (metrics.auc_interval(rows["y"], rows[s], method="wald") for s in "ab")
    assert [a.value, b.value] == expected("auc_a", "auc_b")
    assert [a.se**2, b.se**2] == expected("var_a", "var_b")
    assert [a.low, a.high] == expected("wald_low_a", "wald_high_a")


def test_paired_test(rows, expected):
    found = metrics.auc_test(rows["y"], rows["a"], rows["b"])
    assert [found.statistic, found.pvalue] == expected("paired_z", "paired_p")
    assert [found.low, found.high] == expected("paired_low", "paired_high")


def test_unpaired_test(rows, expected):
    one, two = rows[rows["group"] == 1], rows[rows["group"] == 2]
    found = metrics.auc_test_unpaired(one["y"], one["a"], two["y"], two["a"])
    assert [found.statistic, found.pvalue] == expected("unpaired_t", "unpaired_p")


def test_partial_areas(rows, expected):
    y, a = rows["y"], rows["a"]
    areas = [
        metrics.partial_auc(y, a, max_fpr=0.1),
        metrics.partial_auc(y, a, max_fpr=0.25),
        metrics.partial_auc(y, a, max_fpr=0.25, standardise=True),
        metrics.partial_auc(y, a, min_tpr=0.8),
    ]
    assert areas == expected(
        "partial_fpr_0.1", "partial_fpr_0.25", "mcclish_fpr_0.25", "partial_tpr_0.8"
    )


def test_sensitivities(rows, expected):
    specificities = (0.95, 0.88, 0.72, 0.51)
    found = [metrics.tpr_at(rows["y"], rows["a"], 1.0 - s) for s in specificities]
    names = [f"sensitivity_{s}" for s in specificities]
    assert [one.value for one in found] == expected(*names)


def test_power_and_sample_size(expected):
    found = [metrics.auc_power(0.8, 20, 80), metrics.auc_power(0.65, 40, 60)]
    assert found == expected("power_0.8_20_80", "power_0.65_40_60")
    size = metrics.auc_sample_size(0.7, power=0.9, share=0.2)
    needed = expected("cases_0.7", "controls_0.7").expected
    assert list(size) == [int(np.ceil(rows)) for rows in needed]


def test_hand_and_till(rows, expected):
    scores = np.column_stack([rows["c1"], rows["c2"], rows["c3"]])
    assert [metrics.multiclass_auc(rows["class"], scores).value] == expected(
        "hand_till"
    )
