"""Estimators as plain data."""

import json

import numpy as np
import pytest

from aucmax import SPAM
from aucmax.storage.state import flatten, restore, unflatten

X = np.arange(8.0).reshape(4, 2)
Y = [0, 1, 0, 1]


def test_the_header_is_for_json_and_all_comes_back():
    model = SPAM(random_state=np.random.RandomState(3)).fit(X, Y)
    header, arrays = flatten(model.state())
    again = restore(unflatten(json.loads(json.dumps(header)), arrays))
    found, tensors = flatten(again.state())
    assert found == header
    assert tensors.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(tensors[name], array)


@pytest.mark.parametrize(
    ("place", "value", "text"),
    [
        (1, [1] * 623, "624 keys"),
        (1, [1.0] * 624, "624 keys"),
        (1, [True] * 624, "624 keys"),
        (1, [1 << 32] * 624, "624 keys"),
        (1, [-1] * 624, "624 keys"),
        (1, [1] + [0] * 623, "all zero"),
        (2, 625, "position 625"),
        (2, 10**9, "position 1000000000"),
        (2, -1, "position -1"),
        (2, 1.0, "position 1.0"),
        (3, 2, "has_gauss = 2"),
        (3, True, "has_gauss = True"),
        (4, float("inf"), "gauss = inf"),
        (4, "1", "gauss = '1'"),
    ],
)
def test_a_random_state_that_numpy_would_not_check(place, value, text):
    model = SPAM(random_state=np.random.RandomState(3)).fit(X, Y)
    header, arrays = flatten(model.state())
    header["parameters"]["random_state"]["RandomState"][place] = value
    with pytest.raises(ValueError, match=text):
        restore(unflatten(header, arrays))


def test_a_class_that_nobody_could_load_is_not_saved(tmp_path):
    class Mine(SPAM):
        pass

    with pytest.raises(TypeError, match="Mine is not an estimator of aucmax"):
        Mine().fit(X, Y).save(tmp_path / "model.aucmax")
    assert not list(tmp_path.iterdir())
