"""Model files of version 0.1.0 load and give the scores that they gave then.

``files_0_1_0/expected.json`` has rows and their scores, written by that version.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import aucmax

FILES = Path(__file__).with_name("files_0_1_0")
EXPECTED = json.loads((FILES / "expected.json").read_text())
ARRAYS = [name for name in EXPECTED["scores"] if not name.startswith("table_")]


@pytest.mark.parametrize("name", ARRAYS)
def test_models_of_arrays(name):
    model = aucmax.load(FILES / f"{name}.aucmax")
    scores = model.decision_function(np.array(EXPECTED["rows"]))
    assert_allclose(scores, EXPECTED["scores"][name], rtol=1e-9, atol=1e-12)
    if hasattr(model, "partial_fit"):  # it learns on
        model.partial_fit(EXPECTED["rows"], np.arange(20) % 2 == 0)


@pytest.mark.parametrize("name", ["table_linear", "table_stream"])
def test_models_of_tables(name):
    pandas = pytest.importorskip("pandas")
    model = aucmax.load(FILES / f"{name}.aucmax")
    table = pandas.read_csv(FILES / "table.csv", dtype=str).drop(columns="outcome")
    scores = model.decision_function(table)
    assert_allclose(scores, EXPECTED["scores"][name], rtol=1e-9, atol=1e-12)
