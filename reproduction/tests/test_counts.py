"""Counts in README.md, and tables made from stored fits."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from test_command import call

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "results"


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def counts():
    return tool("counts")


@pytest.fixture
def kept():
    return tool("keep_lines")


def test_the_documented_counts_are_those_of_the_files(counts, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["counts.py", "--below"])
    counts.main()
    printed = capsys.readouterr().out.splitlines()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\n".join(line for line in printed if line.startswith("|")) in text
    for line in printed:
        if not line.startswith("|"):
            *_, dataset, algorithm = line.split()
            assert f"{dataset} ({algorithm})" in text


def test_signs_and_notes_are_read(counts, tmp_path):
    rows = [
        "| set | algorithm | printed | runs | ours | as printed |",
        "|---|---|---|---|---|---|",
        "| a | X | 0.8 | 3 | 0.8100 (+0.0100) = | 0.9 ± 0.1 (+0.1) + |",
        "| a | Y | 0.8 | 3 | 0.7000 (-0.1000) below | 0.7 (-0.1) ≈ |",
        "| b | Y | 0.8 | 3 | 0.7000 (-0.1000) below |  |",
    ]
    notes = f"- a (X, Y); c (Y): {counts.LIMIT}: 0.7.\n- b (Y): {counts.ERROR}."
    head = "# paper\n\n## Table 2, AUC\n\n"
    path = tmp_path / "one.md"
    path.write_text(head + "\n".join(rows) + f"\n\n{notes}\n", encoding="utf-8")
    found = {
        (place.dataset, place.algorithm): forms for place, forms in counts.cells(path)
    }
    assert found == {
        ("a", "X"): {"ours": "met", "printed": "above"},
        ("a", "Y"): {"ours": "explained", "printed": "within"},
        ("b", "Y"): {"ours": "within"},
    }
    path.write_text(path.read_text(encoding="utf-8") + "1 within error", "utf-8")
    found = {
        (place.dataset, place.algorithm): forms for place, forms in counts.cells(path)
    }
    assert found["b", "Y"] == {"ours": "below"}  # the sign says it all
    assert counts.best({"ours": "below", "tuned": "met"}) == "met"
    assert counts.counted(["met", "above", "below"]) == "2 / 0 / 0 / 1"


@pytest.mark.parametrize("name", sorted(p.name for p in (DOCS / "lines").glob("*.gz")))
def test_tables_are_made_from_stored_fits_without_data(name, tmp_path, monkeypatch):
    monkeypatch.delenv("AUCMAX_DATA", raising=False)
    monkeypatch.setattr("aucmax.io.datasets._cache", lambda: tmp_path / "cache")
    stem = name.removesuffix(".jsonl.gz")
    lines = gzip.decompress((DOCS / "lines" / name).read_bytes())
    source = json.loads(lines.splitlines()[0])["source"]
    (tmp_path / f"{source}.jsonl").write_bytes(lines)
    result = call(source, "--no-fits", "-o", tmp_path)
    assert result.exit_code == 0

    def cells(path):
        text = path.read_text(encoding="utf-8")
        return [line for line in text.splitlines() if line.startswith("| ")]

    assert cells(tmp_path / f"{source}.md") == cells(DOCS / f"{stem}.md")


def test_stored_fits_are_rounded_and_the_last_file_counts(kept, tmp_path):
    head = {"source": "gao2013-opauc", "grid": 5, "tune_rows": 9, "rows": 9, "seed": 0}
    job = {"table": "2", "dataset": "german", "rule": "", "algorithm": "OPAUC"}
    numbers = dict.fromkeys(kept.DECIMALS, 2 / 3)

    def written(name, *fits, **other):
        path = tmp_path / name
        path.write_text(
            "".join(f"{json.dumps(one)}\n" for one in (head | other, *fits))
        )
        return path

    def fit(run, **more):
        chosen = {"eta0": 2 / 3, "l2": "auto"}
        return {**job, "form": "ours", "run": run, **numbers, "chosen": chosen, **more}

    failed = {**job, "form": "ours", "run": 2, "error": "no"}
    first = written("first.jsonl", fit(0), fit(1, auc=0.7), failed)
    kept.keep("both", [first, written("second.jsonl", fit(1))], tmp_path)
    again = tmp_path / "lines" / "both.jsonl.gz"
    content = gzip.decompress(again.read_bytes())
    short = {"train_seconds": 0.667, "tune_seconds": 0.667}
    lines = [fit(run, **dict.fromkeys(numbers, 0.666667) | short) for run in (0, 1)]
    for line in lines:
        line["chosen"]["eta0"] = 0.66667
    assert [json.loads(line) for line in content.splitlines()] == [head, *lines]
    assert "0.6667 ± 0.0000" in (tmp_path / "both.md").read_text(encoding="utf-8")
    kept.keep("both", [again], tmp_path)
    assert gzip.decompress(again.read_bytes()) == content
    with pytest.raises(ValueError, match="grid=4"):
        kept.keep("both", [first, written("third.jsonl", fit(3), grid=4)], tmp_path)
