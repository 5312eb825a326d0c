"""The examples in docstrings give what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import aucmax

PACKAGE = Path(aucmax.__file__).parent
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


def test_every_estimator_has_an_example():
    assert set(aucmax.ESTIMATORS.values()) <= set(MODULES)


def test_every_estimator_is_in_the_documentation():
    root = Path(__file__).parents[1]
    text = (root / "docs" / "algorithms.md").read_text(encoding="utf-8")
    missing = [name for name in aucmax.ESTIMATORS if f"`{name}`" not in text]
    assert not missing, f"add {missing} to a table of docs/algorithms.md"
    number = f"[{len(aucmax.ESTIMATORS)} estimators]"
    assert number in (root / "README.md").read_text(encoding="utf-8"), number
