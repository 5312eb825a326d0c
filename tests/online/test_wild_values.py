"""One value far beyond all others in a stream: an error, or a model that ranks."""

import inspect

import numpy as np
import pytest

import aucmax
from aucmax.online.base import DivergenceError
from helpers.data import gaussian

LEARNERS = [
    name
    for name in aucmax.ESTIMATORS
    if hasattr(getattr(aucmax, name), "partial_fit") and name != "Chain"
]


@pytest.mark.parametrize("name", LEARNERS)
def test_scores_do_not_become_equal_in_silence(name):
    X, y = gaussian(1200, 4)
    kind = getattr(aucmax, name)
    seeded = "random_state" in inspect.signature(kind).parameters
    parameters = {"random_state": 0} if seeded else {}
    rows = np.insert(X, 4, np.random.default_rng(0).normal(size=len(X)), axis=1)
    area = kind(**parameters).partial_fit(rows, y).score(rows, y)
    wild = rows.copy()
    wild[600, 4] = 9.96921e36  # netCDF's fill value
    try:
        model, problem = kind(**parameters).partial_fit(wild, y), ""
    except DivergenceError as error:
        model, problem = None, str(error)
    if model is not None:
        assert model.score(rows, y) > area - 0.02
    else:
        assert name != "AUCStream"
        assert "by column 4" in problem
