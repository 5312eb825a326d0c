"""No folder of the package has more lines than ``pyproject.toml`` grants it.

The budgets only fall: what a change adds, it takes out elsewhere.
"""

import tomllib
from collections import Counter
from pathlib import Path

import aucmax

SOURCES = Path(aucmax.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lines_by_folder():
    """Return the lines of Python of each folder; "." has the files beside them."""
    found = Counter()
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).parts
        with path.open("rb") as file:
            found[parts[0] if len(parts) > 1 else "."] += sum(1 for _ in file)
    return found


def test_every_folder_keeps_its_budget():
    budgets = tomllib.loads(PROJECT.read_text())["tool"]["aucmax"]["budgets"]
    found = lines_by_folder()
    assert found.keys() == budgets.keys()
    over = {name: n - budgets[name] for name, n in found.items() if n > budgets[name]}
    assert over == {}
