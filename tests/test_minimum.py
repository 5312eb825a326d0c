"""What .ci/minimum tests are the oldest versions that pyproject.toml allows."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_minimum_versions_are_those_of_the_project():
    pins = ROOT / ".ci" / "minimum.txt"
    if not pins.exists():
        pytest.skip("not a clone")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)", pins.read_text(), re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = project["optional-dependencies"]
    wanted = [*project["dependencies"]]
    for group in groups.keys() - {"dev", "docs"}:  # linters and Sphinx come as they are
        wanted += groups[group]
    for requirement in wanted:
        if requirement.startswith("aucmax["):
            continue
        name, oldest = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups()
        assert f"{pinned[name]}.".startswith(f"{oldest}."), requirement
