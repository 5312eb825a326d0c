"""Estimates with time: what is said if there are few test blocks."""

import warnings

import numpy as np
import pandas as pd
import pytest

from aucmax import BAM, AUCClassifier
from aucmax.blend.honest import Design, few_blocks, time_splits

RNG = np.random.default_rng(0)
N = 600
Y = RNG.random(N) < 0.4


@pytest.mark.parametrize(("values", "blocks"), [(3, 2), (4, 2), (5, 3), (N, 5)])
def test_a_coarse_time_column_is_named_with_its_remedy(values, blocks):
    time = np.arange(N) * values // N
    frame = pd.DataFrame({"year": time, "x": Y + RNG.normal(size=N)})
    model = AUCClassifier([BAM()], time="year", random_state=0)
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(frame, Y)
    found = [text for one in caught if "test block" in (text := str(one.message))]
    splits = time_splits(Design(time.astype(float), None), 0.0, False, Y)
    assert len(splits) == blocks
    assert len(found) == (blocks < 3)
    if found:
        assert found[0] == (
            f"time: only 2 test blocks: the column has {values} distinct values. Use a "
            "finer time column for a narrower interval."
        )


def test_few_rows_of_a_class_are_another_reason():
    time, y = np.arange(1000.0), np.zeros(1000, bool)
    y[::100] = True
    splits = time_splits(Design(time, None), 0.0, False, y)
    text = few_blocks(time, len(splits))
    assert len(splits) == 1
    assert "too few rows of a class" in text
    assert "more rows" in text
    assert "distinct" not in text
    assert few_blocks(time, 3) == ""
