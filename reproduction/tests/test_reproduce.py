"""Running protocols: fits, results files, and no use of test rows in tuning."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import toy_paper
from aucmax.metrics import auc
from aucmax_reproduction import fitting, lines, papers, reproduce
from aucmax_reproduction.fitting import EXACT, Effort, Job, Ready, best_accuracy, choose
from aucmax_reproduction.protocol import OURS, PRINTED, Grid, Recipe
from aucmax_reproduction.reproduce import Wanted, jobs_of
from helpers.data import gaussian

WANTED = Wanted(toy_paper.SOURCE, runs=2)
EFFORT = Effort(grid=2)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    toy_paper.install(monkeypatch, tmp_path)
    return tmp_path / "out" / "fits.jsonl"


def lasting(line):
    """Return the reproducible fields of the lines."""
    return {key: value for key, value in line.items() if "seconds" not in key}


def test_only_what_can_be_compared_is_run_and_nothing_twice(paper):
    jobs = list(jobs_of(WANTED))
    assert {(job.dataset, job.algorithm) for job in jobs} == {
        ("pair", "LS-SVM"),
        ("pair", "Uni-Exp"),
        ("pair", "LeastSquaresAUC"),
        ("pair", "BAMCV"),
    }
    # Runs, two algorithms in two forms and two ceilings.
    assert len(jobs) == len(set(jobs)) == 2 * (2 * 2 + 2)
    assert [job.run for job in jobs] == [0] * 6 + [1] * 6
    assert len(list(jobs_of(WANTED._replace(runs=None)))) == 6 * 6
    assert len(list(jobs_of(WANTED._replace(tables=("2",))))) == 2 * 4


def test_what_is_missing_is_named(paper):
    said = {cell.dataset: reproduce.why_not_run(cell) for cell in WANTED.cells}
    assert "gone.svm.xz has no public address" in said["gone"]
    assert said["nowhere"] == "the data set is not in the registry"
    copied = next(cell for cell in WANTED.cells if cell.copied)
    assert "gao2013-opauc" in reproduce.why_not_run(copied)


def test_a_line_equals_a_slow_version(paper):
    found = reproduce.reproduce(WANTED, paper, EFFORT)
    line = next(one for one in found if one["form"] == PRINTED and one["run"] == 1)
    assert (line["algorithm"], line["train_rows"], line["test_rows"]) == (
        "LS-SVM",
        80,
        40,
    )
    X, y, _ = fitting._data("pair", None)
    train, test, _ = toy_paper.PROTOCOL.plans["1"].split.parts(y, None, 1, 0)
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    recipe = Recipe("LS-SVM")
    assert line["chosen"]["l2"] in (1e-3, 1.0)
    model = recipe.model(OURS, line["chosen"]).fit((X[train] - mean) / spread, y[train])
    score = model.decision_function((X[test] - mean) / spread)
    assert line["auc"] == pytest.approx(auc(y[test], score))
    right = max(np.mean((score >= cut) == y[test]) for cut in [*score, np.inf])
    assert best_accuracy(y[test], score) == pytest.approx(right)


def test_a_run_is_resumed(paper):
    reported = []
    whole = reproduce.reproduce(
        WANTED, paper, EFFORT, watch=lambda *news: reported.append(news)
    )
    assert reported[0] == ("1 pair", 0, 12)
    assert reported[-1] == ("1 pair Uni-Exp", 12, 12)
    content = paper.read_bytes()
    reported.clear()
    again = reproduce.reproduce(
        WANTED, paper, EFFORT, watch=lambda *news: reported.append(news)
    )
    assert (again, reported, paper.read_bytes()) == (whole, [], content)
    # Killed in the middle of the sixth line: the head and four fits are whole.
    ends = [k for k, byte in enumerate(content) if byte == ord("\n")]
    paper.write_bytes(content[: ends[4] + 20])
    resumed = reproduce.reproduce(WANTED, paper, EFFORT)
    assert list(map(lasting, resumed)) == list(map(lasting, whole))
    assert paper.read_bytes()[: ends[4] + 1] == content[: ends[4] + 1]
    assert len(paper.read_text().splitlines()) == 13


def test_results_of_another_effort_are_not_mixed_in(paper):
    reproduce.reproduce(WANTED._replace(algorithms=("LS-SVM",)), paper, EFFORT)
    with pytest.raises(ValueError, match="has results with grid=2, not grid=3"):
        reproduce.reproduce(WANTED, paper, EFFORT._replace(grid=3))
    paper.write_text(f"{paper.read_text()}what?\n")
    with pytest.raises(ValueError, match="line 10: malformed result"):
        reproduce.reproduce(WANTED, paper, EFFORT)


def test_a_failure_is_a_line_and_is_tried_again(paper, monkeypatch):
    real = fitting.fit_model

    def fails(recipe, form, *rest):
        if recipe.system == "LS-SVM" and form == OURS:
            raise MemoryError("36 GB are too many")
        return real(recipe, form, *rest)

    monkeypatch.setattr(fitting, "fit_model", fails)
    found = reproduce.reproduce(WANTED, paper, EFFORT)
    failed = [line for line in found if "error" in line]
    assert [line["error"] for line in failed] == ["MemoryError: 36 GB are too many"] * 2
    assert sum("auc" in line for line in found) == 10
    monkeypatch.setattr(fitting, "fit_model", real)
    again = reproduce.reproduce(WANTED, paper, EFFORT)
    assert all("auc" in line for line in again)
    assert len(lines.read(paper)) == 12 + 2


class Spy:
    """A model that learns nothing and stores the rows it has seen."""

    seen: list

    def __init__(self, eta):
        self.eta = eta

    def get_params(self):
        return {}

    def set_params(self):
        return self

    def fit(self, X, y):
        if self.eta == 3.0:
            raise ValueError("diverged")
        Spy.seen.append(X[:, 0])
        return self

    def decision_function(self, X):
        Spy.seen.append(X[:, 0])
        return self.eta * X[:, 1]


@pytest.mark.parametrize("validated", [False, True])
def test_selection_never_sees_test_rows(monkeypatch, validated):
    X, y = gaussian(90, 3)
    X[:, 0] = np.arange(90)  # which row it is
    X[:, 1] = y + 0.1 * X[:, 2]
    rows = np.random.default_rng(0).permutation(90)
    train, valid, test = rows[:50], rows[50:70], rows[70:]
    ready = Ready(X[train], y[train] > 0, X[test], y[test] > 0)
    if validated:
        ready = ready._replace(X_valid=X[valid], y_valid=y[valid] > 0)
    Spy.seen = []
    recipe = Recipe("spy", {"eta": Grid((3.0, -1.0, 2.0, 4.0))})
    monkeypatch.setattr(Recipe, "model", lambda self, form, choice: Spy(**choice))
    chosen = choose(recipe, PRINTED, ready, 2, Effort(tune_rows=30), 0)
    assert chosen == {"eta": 2.0}  # the first of the best; 3.0 diverges
    seen = set(np.concatenate(Spy.seen))
    assert not seen & set(test)
    assert seen <= set(train[:30]) | (set(valid) if validated else set())
    only = Recipe("spy", {"eta": Grid((3.0,))})
    assert choose(only, PRINTED, ready, 2, Effort(), 0) == {"eta": 3.0}
    none = Recipe("spy", {"eta": Grid((3.0, 3.0))})
    with pytest.raises(
        ValueError, match="None of the 2 parameter choices can be fitted: diverged"
    ):
        choose(none, PRINTED, ready, 2, Effort(), 0)


def test_as_printed_streams_are_streams():
    X, y = gaussian(60, 3)
    recipe = Recipe("Uni-Exp", passes=2)
    model = fitting.fit_model(recipe, PRINTED, {"eta0": 0.1}, X, y > 0, 5)
    rng, expected = np.random.default_rng(5), recipe.model(PRINTED, {"eta0": 0.1})
    for _ in range(2):
        order = rng.permutation(60)
        expected.partial_fit(X[order], y[order] > 0)
    assert_array_equal(model.coef_, expected.coef_)


def test_rules_are_screened_before_all_is_run(paper, monkeypatch):
    printed = toy_paper.cell("four", "LS-SVM", mean=0.85)
    monkeypatch.setattr(papers, "every", lambda: (printed,))
    wanted = WANTED._replace(search=True, forms=(OURS,))
    found = reproduce.reproduce(wanted, paper, EFFORT)
    exact: dict = {}
    for line in found:
        if line["algorithm"] == "LeastSquaresAUC" and line["form"] == EXACT:
            exact.setdefault(line["rule"], []).append(line["auc"])
    assert {"first half of the labels", "odd labels", "label 0"} <= set(exact)
    off = {rule: abs(np.mean(areas) - 0.85) for rule, areas in exact.items()}
    near = [rule for rule in off if off[rule] <= 2 * 0.02]
    assert "odd labels" in near  # what the labels were made from
    run = {line["rule"] for line in found if line["form"] == OURS}
    assert run == set(sorted(near, key=off.get)[:3])
    assert len(near) < len(exact)


def test_a_process_that_dies_does_not_affect_others(monkeypatch):
    jobs = [Job("toy", "1", "pair", "", "LS-SVM", OURS, run) for run in range(4)]
    monkeypatch.setattr(reproduce, "fitted", toy_paper.dies_or_not)
    found = list(reproduce._in_processes(jobs, EFFORT, 2))
    assert {line["run"]: "auc" in line for line in found} == {
        0: True,
        1: False,
        2: True,
        3: True,
    }
    (died,) = (line for line in found if "error" in line)
    assert "perhaps out of memory" in died["error"]
    json.dumps(found)
