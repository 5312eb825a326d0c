"""Data that a model was trained on, and how much their features vary."""

import numpy as np
import pytest
from scipy import sparse

from aucmax.io.feature_scales import Spreads
from aucmax.io.fingerprint import HEAD, Origin, file_digest
from aucmax.io.recipe import check_recipe
from aucmax.tables.labels import Task


def rows(seed=0, n=200):
    return np.random.default_rng(seed).standard_normal((n, 3))


def test_first_rows_are_known_in_any_layout_and_file():
    X = rows()
    origin = Origin.of([], X)
    heads = {
        "whole": X[:HEAD],
        "sparse": sparse.csr_array(X),
        "few": X[: HEAD - 1],
        "turned": X[::-1],
        "others": rows(1),
    }
    assert origin.among(heads) == ["whole", "sparse"]


def test_a_file_is_known_whatever_is_first(tmp_path):
    first, second, copy = (tmp_path / name for name in ("a", "b", "c"))
    first.write_text("one")
    second.write_text("two")
    copy.write_text("two")
    origin = Origin.of(map(file_digest, (first, second)), rows(n=5))
    heads = dict.fromkeys(map(str, (copy, tmp_path / "absent")), rows(1))
    assert origin.among(heads) == [str(copy)]
    assert Origin.from_recipe(None).among(heads) == []


@pytest.mark.parametrize("X", [np.ones((100, 3)), np.eye(3)[np.arange(100) % 3]])
def test_rows_that_are_alike_say_nothing(X):
    """Where few rows are possible, other data may well begin with the same ones."""
    assert Origin.of([], X).head == ""


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_spreads_are_standard_deviations(layout):
    X = np.c_[rows(), np.ones(200), 1000.0 + rows(1)[:, :1]]
    found = Spreads.of(layout(X))
    assert found.features == [0, 1, 2, 4]
    expected = X.std(axis=0)
    np.testing.assert_allclose(found.deviations, expected[[0, 1, 2, 4]], rtol=1e-5)
    np.testing.assert_allclose(found.among([4, 3, 9]), [expected[4], 0, 0], rtol=1e-5)
    assert found.largest([0, 2, 3, 4], np.array([1, -9, 99, 0.0]), 2).features == [0, 2]
    assert Spreads().largest([0], np.ones(1), 2) == ([], [])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("origin", 7),
        ("origin", {"files": [3], "rows": 1, "head": ""}),
        ("origin", {"files": []}),
        ("spreads", {"features": [1, 1], "deviations": [1.0, 1.0]}),
        ("spreads", {"features": [-1], "deviations": [1.0]}),
        ("spreads", {"features": [1], "deviations": []}),
        ("spreads", {"features": [1], "deviations": [float("nan")]}),
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
        "origin": Origin.of(["abc"], rows())._asdict(),
        "spreads": Spreads.of(rows())._asdict(),
    }
    check_recipe(recipe)
    with pytest.raises(ValueError, match=f"its recipe has {key}"):
        check_recipe(recipe | {key: value})
