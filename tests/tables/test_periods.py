"""Periods of time."""

import numpy as np
import pandas as pd
import pytest

from aucmax.tables.periods import MISSING, periods

DAYS = np.datetime64("2023-11-28") + np.arange(800)


@pytest.mark.parametrize(
    ("days", "first", "last"),
    [
        (5, "2023-11-28", "2023-12-02"),
        (60, "2023-11-27", "2024-01-22"),  # weeks, by their Monday
        (400, "2023-11", "2024-12"),
        (800, "2023-11", "2026-02"),
    ],
)
def test_the_finest_unit_with_few_periods(days, first, last):
    found = periods(DAYS[:days])
    assert (found[0], found[-1]) == (first, last)
    assert (np.sort(found) == found).all()
    assert np.unique(found).size <= 36


def test_quarters_and_years():
    days = np.datetime64("2000-05-15") + np.arange(10_000)
    assert periods(days[:2500])[0] == "2000-Q2"
    assert periods(days)[0] == "2000"


@pytest.mark.parametrize(
    "form",
    [
        lambda d: d.astype(str),
        lambda d: pd.Series(d),
        lambda d: pd.Series(d).dt.strftime("%d.%m.%Y"),
        lambda d: pd.Series(d).dt.strftime("%m/%d/%Y 10:30"),
    ],
)
def test_dates_in_any_form(form):
    expected = periods(DAYS[:400])
    assert (periods(form(DAYS[:400])) == expected).all()


def test_missing_dates_and_other_values():
    found = periods(pd.Series(["2024-01-01", None, "2024-01-02"]))
    assert found.tolist() == ["2024-01-01", MISSING, "2024-01-02"]
    assert periods([2020, 2021]).tolist() == ["2020", "2021"]
    assert periods(["spring", "autumn"]).tolist() == ["spring", "autumn"]
    with pytest.raises(ValueError, match="one date per row"):
        periods([["2024-01-01"]])
