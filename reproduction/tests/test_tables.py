"""Tables and figures."""

import csv
import io

import numpy as np
import pytest

import toy_paper
from aucmax.metrics import auc
from aucmax_reproduction import curves, fitting, tables
from aucmax_reproduction.fitting import Effort, Ready
from aucmax_reproduction.protocol import OURS, TIMES, Picture, Recipe
from aucmax_reproduction.reproduce import Wanted
from aucmax_reproduction.verdict import Report
from helpers.data import gaussian


@pytest.fixture
def report(tmp_path, monkeypatch):
    toy_paper.install(monkeypatch, tmp_path)
    place = {"table": "1", "dataset": "pair", "rule": "", "form": OURS}
    fits = [
        {**place, "algorithm": name, "run": run, "auc": area, "accuracy_optroc": 0.7}
        | {"train_seconds": 0.1}
        for name, areas in {"LS-SVM": (0.81, 0.83), "Uni-Exp": (0.7, 0.71)}.items()
        for run, area in enumerate(areas)
    ]
    wanted = Wanted(toy_paper.SOURCE, forms=(OURS,), runs=2)
    return Report.of(wanted, Effort(grid=3, rows=1000), fits)


def test_markdown_has_the_command_the_cells_and_the_reasons(report):
    text = tables.as_markdown(report)
    for words in (
        "At most 2 runs of a cell, 3 values of a parameter, 1,000 rows to train on.",
        "Our defaults, nothing tuned: 2 of 3 cells the same, 0 above, 1 below.",
        "aucmax_reproduction toy2024 --table 1 --forms ours --runs 2 --grid 3",
        "| set | algorithm | published | ours |",
        "| pair | LS-SVM | 0.8000 ± 0.0200 | 0.8200 ± 0.0141 (+0.0200) same |",
        "| pair | Uni-Exp | 0.8000 ± 0.0200 | 0.7050 ± 0.0071 (-0.0950) below |",
        "- nowhere (LS-SVM): the data set is not in the registry.",
        "| 1 | Uni-Exp | ours | 1/0/0 | 1/0/0 | 1 of 1 |",
        "## Table 2, accuracy at the best operating point",
    ):
        assert words in text


def test_failed_runs_are_shown_in_the_cell(report):
    one = next(v for v in report.verdicts if v.printed.algorithm == "LS-SVM")
    one = one._replace(verdict="failed", runs=17, failures=("DivergenceError: x",) * 8)
    assert tables.box_text(one) == "0.8200 ± 0.0141 (+0.0200) 17 of 25, 8 diverged"
    other = one._replace(failures=("MemoryError: x", "DivergenceError: x"))
    assert tables.box_text(other).endswith("17 of 19, 2 failed")
    none = one._replace(mean=None, std=None, runs=0, failures=("DivergenceError",))
    assert tables.box_text(none) == "0 of 1, 1 diverged"
    text = tables.verdict_text([one, one._replace(verdict="below", chance=True)])
    assert text == (
        "0 of 2 cells the same, 0 above, 1 below (0 explained, 1 within chance), 1 "
        "with failed runs"
    )


def test_html_is_a_page_with_the_same_cells(report):
    page = tables.as_html(report)
    assert page.startswith("<!doctype html>")
    assert "0.8200 ± 0.0141 (+0.0200) same" in page
    assert "http" not in page
    assert page.count("<tr>") == sum(
        len(section.rows) + 1 for section in tables.sections(report) if section.rows
    )


def test_csv_has_a_line_for_each_cell_and_form(report):
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(report))))
    assert len(rows) == len(report.verdicts)
    for row, one in zip(rows, report.verdicts, strict=True):
        assert row["verdict"] == one.verdict
        assert row["ours"] == ("" if one.mean is None else repr(one.mean))


def test_the_whole_effort_is_reported(report):
    whole = report._replace(effort=Effort(), wanted=report.wanted._replace(runs=None))
    assert tables.effort_of(whole) == "The paper's whole effort."
    assert "--runs 0 --grid 0 --tune-rows 0 --rows 0" in tables.command_of(whole)


def test_the_command_of_a_table_names_what_is_in_it(report):
    wanted = report.wanted._replace(
        datasets=("four", "pair"), algorithms=("Uni-Exp", "LS-SVM")
    )
    report = report._replace(wanted=wanted)
    assert "--datasets four,pair --algorithms Uni-Exp,LS" in tables.command_of(
        report, "1"
    )
    assert "--datasets pair --algorithms LS-SVM --forms" in tables.command_of(
        report, "2"
    )


def test_the_commands_of_a_table_rerun_what_is_in_it(report):
    first, second = (
        next(v for v in report.verdicts if v.printed[2:4] == ("pair", name))
        for name in ("LS-SVM", "Uni-Exp")
    )
    tuned = first._replace(form="tuned", runs=1)
    failed = second._replace(form="tuned", runs=1, failures=("x", "y"))
    found = [first, second, tuned, failed._replace(printed=first.printed)]
    texts = tables.commands_of(report, "1", found).splitlines()
    assert [text.split("--table 1 ")[1].split(" --grid")[0] for text in texts] == [
        "--forms ours --runs 2",
        "--algorithms LS-SVM --forms tuned --runs 3",
    ]


@pytest.fixture(scope="module")
def ready():
    X, y = gaussian(200, 4)
    return Ready(X[:150], y[:150] > 0, X[150:], y[150:] > 0)


def test_a_learning_curve_ends_at_all_rows(ready):
    curve = curves.learning_curve(
        "Uni-Exp", Recipe("Uni-Exp").model(OURS, {}), ready, 0
    )
    assert (curve.at[0], curve.at[-1]) == (100.0, 150.0)
    assert list(curve.seconds) == sorted(curve.seconds)
    model = Recipe("Uni-Exp").model(OURS, {}).partial_fit(ready.X, ready.y)
    assert curve.auc[-1] == auc(ready.y_test, model.decision_function(ready.X_test))


@pytest.mark.filterwarnings("ignore:SPDAM has not converged")
def test_batch_learners_have_a_curve_of_passes(ready):
    model = Recipe("SPDAM").model(OURS, {})
    curve = curves.learning_curve("SPDAM", fitting.seeded(model, 0), ready, 0)
    assert curve.at == [150.0 * passes for passes in (1, 2, 4, 8, 16)]


def test_a_parameter_that_diverges_has_no_area(ready):
    picture = Picture("1", "1", "", ("LS-SVM",), "l2", (1.0, -1.0))
    curve = curves.parameter_curve("LS-SVM", Recipe("LS-SVM"), picture, ready, 0)
    assert np.isfinite(curve.auc[0])
    assert np.isnan(curve.auc[1])


def test_seconds_are_means_by_set_and_algorithm():
    picture = Picture("1", "2", "", ("A", "B"), form="printed", kind=TIMES)

    def line(dataset, name, seconds, **more):
        place = {"table": "2", "form": "printed", "dataset": dataset}
        return {**place, "algorithm": name, "train_seconds": seconds, **more}

    lines = [line("x", "A", 1.0), line("x", "A", 3.0), line("y", "B", 5.0)]
    lines += [line("x", "C", 9.0), line("x", "B", 9.0, form="ours")]
    failed = line("y", "A", 0.0)
    del failed["train_seconds"]
    found = curves.mean_seconds(picture, [*lines, failed])
    assert found == {"x": {"A": 2.0}, "y": {"B": 5.0}}
    pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")
    from aucmax_reproduction.figures import time_figure

    (axes,) = time_figure(found, "title").axes
    assert axes.get_yscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y"]


def test_imbalance_harms_accuracy_but_not_that_of_the_ranking():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2 == 0
    X = rng.normal(size=(2000, 3)) + y[:, None]
    many = Ready(X[:1000], y[:1000], X[1000:], y[1000:])
    ranked, plain = curves.imbalance_curves((1, 50), many, 0)
    assert ranked.at == plain.at == [1, 50]
    assert ranked.auc[0] == pytest.approx(plain.auc[0], abs=0.02)
    assert ranked.auc[1] > ranked.auc[0] - 0.05
    assert plain.auc[1] < plain.auc[0] - 0.1


def test_figures_draw_the_curves(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need aucmax[plot]")
    from aucmax_reproduction.figures import (
        learning_figure,
        parameter_figure,
        save_figure,
    )

    one = curves.Curve("A", [10.0, 1000.0], [0.1, 0.2], [0.7, 0.8])
    other = curves.Curve("B", [10.0, 1000.0], [0.3, 0.4], [0.6, np.nan])
    left, right = learning_figure([one, one], "title").axes
    assert left.get_xscale() == "log"
    assert right.get_xscale() == "linear"
    assert list(right.get_lines()[0].get_xdata()) == one.seconds
    figure = parameter_figure([one, other], "title", "l2")
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["A", "B", "B diverged"]
    save_figure(figure, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
