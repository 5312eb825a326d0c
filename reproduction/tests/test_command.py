"""The command ``python -m aucmax_reproduction``."""

import json
from csv import DictReader

import pytest
from typer.testing import CliRunner

import toy_paper
from aucmax_reproduction.__main__ import app

FAST = ("--runs", 2, "--grid", 2, "--jobs", 1)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    toy_paper.install(monkeypatch, tmp_path)
    return tmp_path / "out"


def call(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def invoke(folder, *arguments):
    return call(toy_paper.SOURCE, *FAST, "-o", folder, *arguments)


def test_a_table_has_published_values_and_ours(paper):
    result = invoke(paper, "--table", "1", "--datasets", "pair,nowhere")
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for words in (
        "A paper that there is not.",
        "At most 2 runs of a cell, 2 values of a parameter, 3,000 rows to tune by",
        "Table 1, AUC",
        "as published",
        "nowhere (LS-SVM): the data set is not in the registry.",
        "Win/tie/loss of the paper's own algorithm",
        "our task is easier than the paper's",
    ):
        assert words in text
    for ending in ("jsonl", "csv", "md", "html"):
        assert (paper / f"{toy_paper.SOURCE}.{ending}").stat().st_size > 100
    again = invoke(paper, "--table", "1", "--datasets", "pair", "--json")
    report = json.loads(again.stdout)
    assert (report["runs"], report["grid"]) == (2, 2)
    with open(paper / f"{toy_paper.SOURCE}.csv") as file:
        rows = list(DictReader(file))
    assert [float(row["ours"]) for row in rows if row["ours"]] == [
        cell["ours"] for cell in report["cells"] if cell["ours"] is not None
    ]
    fits = (paper / f"{toy_paper.SOURCE}.jsonl").read_text().splitlines()
    assert len(fits) == 1 + 2 * (2 * 2 + 2)  # nothing was done again


def test_tables_from_existing_fits(paper):
    selection = ("--table", "1", "--datasets", "pair", "--algorithms", "LS-SVM")
    invoke(paper, *selection)
    done = (paper / f"{toy_paper.SOURCE}.jsonl").read_text()
    result = invoke(paper, "--no-fits", "--grid", 99)  # what was done is in the file
    assert result.exit_code == 0
    text = (paper / f"{toy_paper.SOURCE}.md").read_text()
    assert "At most 2 values of a parameter, 3,000 rows" in text
    assert "--forms printed,ours --runs 2 --grid 2 --tune-rows 3000" in text
    assert "Table 2, accuracy" in text  # the same fits
    assert (paper / f"{toy_paper.SOURCE}.jsonl").read_text() == done
    elsewhere = invoke(paper / "elsewhere", "--no-fits")
    assert elsewhere.exit_code
    assert "No results: " in elsewhere.stderr


def test_a_dry_run_counts_and_writes_nothing(paper):
    rows = json.loads(invoke(paper, "--dry-run", "--json").stdout)
    assert rows == [
        {"table": "1", "form": "exact", "fits": 4, "models": 4},
        # Both algorithms twice; as printed, of two values each, by two folds.
        {"table": "1", "form": "ours", "fits": 4, "models": 4},
        {"table": "1", "form": "printed", "fits": 4, "models": 4 * (1 + 2 * 2)},
    ]
    text = " ".join(invoke(paper, "--dry-run").stdout.split())
    assert f"Skipped: four: {toy_paper.UNKNOWN}." in text
    assert "another machine" not in text
    assert not paper.exists()


def test_figures_are_drawn(paper):
    pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")
    result = invoke(
        *(paper, "--datasets", "pair", "--algorithms", "LS-SVM"),
        *("--forms", "ours", "--figures"),
    )
    assert result.exit_code == 0
    drawn = sorted(path.name for path in (paper / "figures").iterdir())
    names = ["1-pair", "2-pair", "3", "4-pair"]
    assert drawn == [f"{toy_paper.SOURCE}-{name}.png" for name in names]
    only = invoke(paper / "only", "--no-fits", "--figure", "3")
    assert only.exit_code == 1  # no fits there
    (paper / "figures" / drawn[2]).unlink()
    assert invoke(paper, "--no-fits", "--figure", "3").exit_code == 0
    assert (paper / "figures" / drawn[2]).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--table", "9"], "toy2024 has no table '9'. Use one of 1, 2."),
        (["--forms", "best"], "Unknown form 'best'. Use one of printed, ours, tuned."),
        (["--figure", "9"], "toy2024 has no figure '9'. Use one of 1, 2, 3, 4."),
        (["--forms", ","], "--forms is empty. Use one of printed, ours, tuned."),
    ],
)
def test_errors_are_one_line(paper, arguments, message):
    result = invoke(paper, *arguments)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {message}\n"
    assert not paper.exists()


def test_a_failure_is_reported_and_sets_the_exit_code(paper, monkeypatch):
    from aucmax_reproduction import fitting

    def fails(*_):
        raise MemoryError("36 GB are too many")

    monkeypatch.setattr(fitting, "fit_model", fails)
    result = invoke(paper, "--datasets", "pair", "--forms", "ours")
    assert result.exit_code == 1
    assert (
        "Cells with failed runs: 3; first pair LS-SVM: MemoryError: 36 GB"
        in " ".join(result.stderr.split())
    )


def test_an_interrupt_tells_how_to_resume(paper, monkeypatch):
    from aucmax_reproduction import reproduce

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "fitted", interrupted)
    result = invoke(paper, "--datasets", "pair")
    assert result.exit_code == 130
    assert "run the same command to resume" in " ".join(result.stderr.split())
