"""Counts in README.md, and tables made from stored fits."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from aucmax_reproduction.protocols import protocol
from test_command import call

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "results"


def tool(name, folder="tools"):
    spec = importlib.util.spec_from_file_location(name, ROOT / folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def counts():
    return tool("counts")


@pytest.fixture
def kept():
    return tool("keep_lines")


def test_the_documented_counts_are_those_of_the_stored_fits(counts, capsys):
    counts.main()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for table in capsys.readouterr().out.strip().split("\n\n"):
        assert table in text
    counts.main("below")
    assert capsys.readouterr().out == (DOCS / "below.md").read_text(encoding="utf-8")


def test_all_published_values_are_accounted_for(counts):
    head, *rows = counts.coverage(counts.stored())
    assert int(head[1]) == sum(int(number) for _, number in rows) == 1696


CELL = ("gao2013-opauc", "2", "german")


def store(folder, name, means, form="printed", **more):
    fits = [
        {"table": CELL[1], "dataset": CELL[2], "rule": "", "algorithm": algorithm}
        | {"form": form, "run": run, "auc": mean, "accuracy_optroc": 0.7}
        | {"train_seconds": 0.1, **more}
        for algorithm, mean in means.items()
        for run in range(3)
    ]
    text = "\n".join(json.dumps(line) for line in ({"source": CELL[0]}, *fits))
    (folder / "lines").mkdir(exist_ok=True)
    (folder / "lines" / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))


def test_verdicts_of_stored_fits_are_counted(counts, tmp_path):
    # Published: OPAUC 0.7978 ± 0.0347, OAMseq 0.7747 ± 0.0411, Uni-Exp 0.7908 ± 0.0367.
    experiments = tmp_path / "experiments.csv"
    head = "source,table,dataset,algorithm,forms,found,command\n"
    experiments.write_text(head)
    store(tmp_path, "a", {"OPAUC": 0.80, "OAMseq": 0.82, "Uni-Exp": 0.6})
    store(tmp_path, "a-all", {"OAMseq": 0.78})  # later than "a"
    store(tmp_path, "c", {"OPAUC": 0.84}, form="ours")

    def row(form, source="gao2013"):
        rows = counts.headline(counts.stored(tmp_path))
        return next(row[2:8] for row in rows if row[:2] == [form, source])

    assert row("as published") == ["3", "2 (67 %)", "0", "1", "0", "0"]
    assert row("our defaults", "all") == ["1", "0 (0 %)", "1", "0", "0", "0"]
    cells = counts.below(counts.stored(tmp_path))
    assert [line[2:4] + line[5:] for line in cells[1:]] == [
        ["Uni-Exp", "0.7908 ± 0.0367", "unexplained; the paper's whole effort"]
    ]
    experiments.write_text(f"{head}{','.join(CELL)},Uni-Exp,printed ours,why,run it\n")
    assert row("as published") == ["3", "2 (67 %)", "0", "1", "1", "0"]
    (cell,) = counts.below(counts.stored(tmp_path))[1:]
    assert cell[-1] == "explained: why (`run it`)"
    # With a task that is too easy, nothing is compared.
    store(tmp_path, "d", {"OPAUC": 0.87})
    assert counts.headline(counts.stored(tmp_path))[1:] == []
    assert ["our task is easier than the paper's", "3"] in counts.coverage(
        counts.stored(tmp_path)
    )


@pytest.mark.parametrize("name", sorted(p.name for p in (DOCS / "lines").glob("*.gz")))
def test_tables_are_made_from_stored_fits_without_data(name, tmp_path, monkeypatch):
    monkeypatch.delenv("AUCMAX_DATA", raising=False)
    monkeypatch.setattr(
        "aucmax_reproduction.datasets._cache", lambda: tmp_path / "cache"
    )
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
    found = [json.loads(line) for line in content.splitlines()]
    assert found == [head, *lines, failed]
    table = (tmp_path / "both.md").read_text(encoding="utf-8")
    assert "0.6667 ± 0.0000 (-0.1311) 2 of 3, 1 failed" in table
    kept.keep("both", [again], tmp_path)
    assert gzip.decompress(again.read_bytes()) == content
    with pytest.raises(ValueError, match="grid=4"):
        kept.keep("both", [first, written("third.jsonl", fit(3), grid=4)], tmp_path)


def test_the_experiment_on_passes_is_documented(capsys, monkeypatch):
    passes = tool("passes", "experiments")
    monkeypatch.setattr("sys.argv", ["passes.py"])
    passes.main()
    text = capsys.readouterr().out
    written = DOCS / "experiments" / "passes.md"
    assert text == written.read_text(encoding="utf-8")
    assert text.split("\n\n")[1].strip() in (ROOT / "README.md").read_text("utf-8")


def test_only_the_passes_of_online_learners_change():
    passes = tool("passes", "experiments")
    before = protocol("natole2020-thesis").plans["6.3"].recipes
    changed = passes.with_passes(protocol("natole2020-thesis"), 1).plans["6.3"].recipes
    assert changed["SPDAM"] == before["SPDAM"]
    assert (before["regSOLAM"].passes, changed["regSOLAM"].passes) == (15, 1)
    assert changed["SPAM-L2"].printed == {"max_iter": 1, "shuffle": True}
