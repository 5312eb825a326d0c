"""``aucmax datasets``."""

import json
import os

import pytest

from aucmax.io import datasets as registry
from aucmax.io.datasets import _cache
from helpers import commands


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch):
    monkeypatch.setenv("AUCMAX_DATA", str(tmp_path / "given"))
    monkeypatch.setattr(registry, "_cache", lambda: tmp_path / "cache")


def invoke(*arguments: str):
    return commands.invoke("datasets", *arguments)


def test_list_fits_a_terminal_and_names_every_set(tmp_path):
    result = invoke()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    cells = {line.split()[0]: line.split() for line in lines if line.strip()}
    for name in registry.names():
        entry = registry.entry(name)
        assert cells[name][1:4] == [
            f"{entry.rows:,}",
            f"{entry.features:,}",
            f"{entry.positives:,}",
        ]
    assert cells["a9a"][4:] == ["1", ":", "-1", "fetch"]
    assert cells["glass"][4:] == ["1", ":", "rest", "no"]
    assert cells["sector"][4:7] == ["1–52", ":", "53–105"]
    assert max(map(len, lines)) <= 80
    assert str(tmp_path / "given") in result.stdout.replace("\n", "")


def test_description_of_one_set(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "a9a.test.svm.xz").touch()
    result = invoke("a9a")
    assert result.exit_code == 0
    for part in registry.entry("a9a").parts.values():
        for fact in (part.sha256, part.url, part.source):
            assert fact in result.stdout
    assert str(tmp_path / "given" / "a9a.test.svm.xz") in result.stdout
    assert "not available locally" in result.stdout
    assert "1 against -1" in result.stdout


def test_every_printed_name_is_accepted(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    words = invoke().stdout.split()
    assert set(registry.names()) <= set(words)
    for name, part in ("a9a", "train"), ("a9a", "test"), ("german", None):
        asked = name if part is None else f"{name}.{part}"
        assert f"{asked}: " in invoke(name).stdout
        result = invoke(asked)
        assert result.exit_code == 0, result.stderr
        rows = registry.entry(name).parts[part or "all"].rows
        assert result.stdout.startswith(f"{asked}: {rows:,} rows")
        assert json.loads(invoke(asked, "--json").stdout)["rows"] == rows
    assert "has no part 'tset'" in invoke("a9a.tset").stderr


def test_json_of_all_and_of_one():
    everything = json.loads(invoke("--json").stdout)
    assert [facts["name"] for facts in everything] == registry.names()
    usps = json.loads(invoke("usps", "--json").stdout)
    assert usps == next(facts for facts in everything if facts["name"] == "usps")
    assert usps["positives"] == 5427
    assert usps["labels"]["0"] == 1553
    assert usps["parts"]["train"]["path"] is None
    assert usps["parts"]["train"]["url"].startswith("https://")


def test_errors_are_reported_in_one_line():
    unknown = invoke("new20")
    assert unknown.exit_code == 1
    assert unknown.stderr.startswith("Error: Unknown data set 'new20'.")
    homeless = invoke("glass", "--fetch")
    assert homeless.exit_code == 1
    assert "no download address" in homeless.stderr
    for result in (unknown, homeless):
        assert len(result.stderr.strip().splitlines()) == 1
        assert result.stdout == ""
    assert invoke("--fetch").exit_code == 2


def test_fetch_downloads_and_then_describes(monkeypatch):
    fetched = []
    monkeypatch.setattr(registry, "fetch", lambda name, progress: fetched.append(name))
    result = invoke("a9a", "--fetch", "--json")
    assert fetched == ["a9a"]
    assert json.loads(result.stdout)["name"] == "a9a"


def test_error_without_a_home_folder_names_the_remedy(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no home folder
    monkeypatch.setattr(registry, "_cache", _cache)  # the true one
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    result = invoke()
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Data sets are stored in the home folder")
