"""Data that a model was trained on, and how much their features vary."""

import numpy as np
import pytest

from aucmax.io.recipe import check_recipe
from aucmax.tables.labels import Task


def rows(seed=0, n=200):
    return np.random.default_rng(seed).standard_normal((n, 3))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("judged", {"auc": 1.0}),
        (
            "judged",
            {"on": "test", "rows": 1, "positives": 1, "weighted": False, "auc": {}},
        ),
    ],
)
def test_what_a_file_tells_is_checked(key, value):
    reading = {"format": "svmlight", "zero_based": False, "missing": "error"}
    recipe = {
        "input": {**reading, "dtype": "float64"},
        "task": Task.of([1], [0]).to_json(),
    }
    check_recipe(recipe)
    with pytest.raises(ValueError, match=f"its recipe has {key}"):
        check_recipe(recipe | {key: value})
