"""Periods of time, and columns of text of any length."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from aucmax import BAM, AUCClassifier
from aucmax.blend.honest import group_of_rows
from aucmax.blend.table_input import table_column
from aucmax.metrics import auc_by_group
from aucmax.report.summary import by_period
from aucmax.tables.periods import MISSING, moments, periods, texts
from aucmax.tables.structure import find_structure
from aucmax.workflows.evaluate import Labels

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


LONG = "Z" * 50_000
CELLS = [LONG if k == 77 else f"{'gh'[k % 2]}{k % 40}" for k in range(500)]


def peak(run, *arguments, **options):
    """Return the memory in bytes that a call takes at most, and its result."""
    tracemalloc.start()
    result = run(*arguments, **options)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, result


@pytest.mark.parametrize("missing", [False, True])
def test_a_long_cell_takes_its_own_memory_only(missing):
    cells = np.array([*CELLS[:-1], None if missing else "g1"], dtype=object)
    scores = np.arange(500.0)
    positive = scores % 3 == 0
    labels = Labels(np.arange(500), CELLS)
    model = AUCClassifier([BAM()], group="g", cv=3)
    calls = [
        (periods, cells),
        (texts, cells),
        (moments, cells),
        (find_structure, {"customer": cells}, positive),
        (group_of_rows, cells),
        (model._design, {"g": cells}, None),
        (labels.text,),
        (labels.with_periods,),
        (auc_by_group, positive, scores, texts(cells)),
        (by_period, positive, scores, texts(cells)),
    ]
    peak(*calls[0])  # imports
    for run, *arguments in calls:
        assert peak(run, *arguments)[0] < 20e6, run


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_of_a_table_are_objects_whatever_their_length(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    bound, column = peak(table_column, make({"g": CELLS, "x": [1.5] * 500}), "g")
    assert bound < 20e6
    assert column.tolist() == CELLS


def test_groups_have_the_same_order_as_texts_and_as_codes():
    groups = np.array(["b", None, "a", 10, 9, float("nan"), "b"], dtype=object)
    assert texts(groups).tolist() == ["b", "None", "a", "10", "9", "nan", "b"]
    # Missing values are one group, which comes first.
    assert group_of_rows(groups).tolist() == [4, -1, 3, 0, 1, -1, 4]
