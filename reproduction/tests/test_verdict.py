"""Verdicts on our means and the published ones."""

import numpy as np
import pytest
from scipy.stats import ttest_ind_from_stats, ttest_rel

import toy_paper
from aucmax_reproduction.fitting import CEILINGS, EXACT
from aucmax_reproduction.protocol import OURS, PRINTED
from aucmax_reproduction.reproduce import Wanted
from aucmax_reproduction.splits import Given, Holdout, Validated
from aucmax_reproduction.verdict import (
    ABOVE,
    BELOW,
    FAILED,
    INCOMPARABLE,
    NOT_RUN,
    SAME,
    compare_mean,
    fitting_rules,
    matches,
    paired_t,
    verdict_counts,
    verdicts,
    without_easier,
)

WANTED = Wanted(toy_paper.SOURCE)


@pytest.fixture(autouse=True)
def paper(tmp_path, monkeypatch):
    toy_paper.install(monkeypatch, tmp_path)


def line(run, area, dataset="pair", algorithm="LS-SVM", form=OURS, rule=""):
    return {
        "table": "1",
        "dataset": dataset,
        "rule": rule,
        "algorithm": algorithm,
        "form": form,
        "run": run,
        "auc": area,
        "accuracy_optroc": area - 0.1,
        "train_seconds": 0.5,
    }


@pytest.mark.parametrize(
    ("mean", "std", "verdict"),
    [
        (0.8, 0.02, SAME),
        (0.781, 0.02, SAME),
        (0.779, 0.02, BELOW),
        (0.819, 0.02, SAME),
        (0.821, 0.02, ABOVE),
        (0.796, None, SAME),
        (0.794, None, BELOW),
        (0.794, 0.0, BELOW),
        (0.806, 0.0, ABOVE),
    ],
)
def test_within_a_published_deviation_on_both_sides_is_the_same(mean, std, verdict):
    assert compare_mean(mean, toy_paper.cell("pair", "LS-SVM", 0.8, std)) == verdict


def test_every_cell_gets_a_verdict():
    fits = [line(0, 0.8), line(1, 0.84), line(0, 0.7, form=PRINTED)]
    fits += [{**line(0, 0.0, algorithm="Uni-Exp"), "error": "ValueError: no"}]
    found = {}
    for one in verdicts(WANTED, fits):
        cell = one.printed
        found[cell.dataset, cell.algorithm, cell.metric, one.form] = one
    mine = found["pair", "LS-SVM", "auc", OURS]
    assert (mine.runs, mine.mean, mine.verdict) == (2, pytest.approx(0.82), SAME)
    assert mine.std == pytest.approx(np.std([0.8, 0.84], ddof=1))
    assert mine.difference == pytest.approx(0.02)
    printed = found["pair", "LS-SVM", "auc", PRINTED]
    assert (printed.verdict, printed.std) == (BELOW, None)
    accuracy = found["pair", "LS-SVM", "accuracy_optroc", OURS]
    assert (accuracy.mean, accuracy.verdict) == (pytest.approx(0.72), SAME)
    seconds = found["pair", "LS-SVM", "train_seconds", OURS]
    assert (seconds.verdict, seconds.mean) == (INCOMPARABLE, 0.5)
    assert seconds.reason == "seconds of another machine"
    failed = found["pair", "Uni-Exp", "auc", OURS]
    assert (failed.verdict, failed.reason) == (FAILED, "ValueError: no")
    assert found["pair", "Uni-Exp", "auc", PRINTED].verdict == NOT_RUN
    assert found["pair", "OPAUC", "auc", ""].verdict == INCOMPARABLE
    assert found["gone", "LS-SVM", "auc", ""].verdict == INCOMPARABLE
    assert found["part", "LS-SVM", "auc", OURS].reason == "a part of the rows"
    assert "--search" in found["four", "LS-SVM", "auc", OURS].reason
    counts = verdict_counts(found.values())
    assert counts[OURS][SAME] == 2
    assert counts[PRINTED][BELOW] == 2


def four(*areas, rule):
    fits = [line(k, area, "four", rule=rule) for k, area in enumerate(areas)]
    return [*fits, {**line(0, 0.8, "four", rule=rule), "form": EXACT}]


def test_a_rule_is_found_where_all_fit_and_the_task_is_no_easier():
    fits = four(0.80, 0.83, rule="odd labels")
    fits += four(0.80, 0.81, rule="label 0")
    fits += four(0.95, 0.97, rule="label 1")
    fits += four(0.70, 0.71, rule="label 2")
    assert fitting_rules(toy_paper.SOURCE, "1", "four", fits) == [
        "label 0",
        "odd labels",
    ]
    wanted = WANTED._replace(datasets=("four",), forms=(OURS,))
    (one,) = verdicts(wanted, fits)
    assert (one.rule, one.verdict, one.runs) == ("label 0", SAME, 2)
    assert one.reason == (
        "4 plausible rules tried, 4 come near, under 2 do all algorithms fit"
    )
    (one,) = verdicts(wanted, four(0.95, rule="label 1"))
    assert (one.verdict, one.mean) == (INCOMPARABLE, None)
    assert one.reason.startswith(f"{toy_paper.UNKNOWN}; 1 plausible rules tried")


def test_linear_models_below_the_published_value_are_reported():
    tops = [{**line(0, 0.76, form=EXACT), "algorithm": by} for by in CEILINGS]
    fits = [line(0, 0.75), *tops]
    wanted = WANTED._replace(algorithms=("LS-SVM",), datasets=("pair",), forms=(OURS,))
    one, *_ = verdicts(wanted, fits)
    assert one.verdict == BELOW
    assert one.explained
    assert one.reason == (
        "the best linear models on the same rows are below too: LeastSquaresAUC 0.7600 "
        "and BAMCV 0.7600"
    )
    for top in tops:  # one is enough
        top["auc"] = 0.79
        one, *_ = verdicts(wanted, fits)
        assert (one.reason, one.explained) == ("", False)
        top["auc"] = 0.76


def test_the_t_test_is_that_of_scipy():
    rng = np.random.default_rng(0)
    seen = set()
    for shift in (-0.05, 0.0, 0.002, 0.05):
        for _ in range(10):
            first = rng.normal(0.8, 0.02, 10)
            second = first - shift + rng.normal(0.0, 0.01, 10)
            p_value = ttest_rel(first, second).pvalue
            sign = int(np.sign((first - second).mean()))
            assert paired_t(first, second) == (sign if p_value < 0.05 else 0)
            seen.add(paired_t(first, second))
    assert seen == {-1, 0, 1}
    assert paired_t(first, first) == 0
    assert paired_t(first + 0.25, first) == 1
    assert paired_t(first[:1], second[:1]) == 0


def test_the_reference_is_tested_on_the_same_runs():
    first = [0.80, 0.82, 0.81, 0.83]
    fits = [line(k, area) for k, area in enumerate(first)]
    fits += [line(k, area - 0.1 + 0.001 * k, algorithm="Uni-Exp") for k, area in
             enumerate(first[:3])]  # fmt: skip
    (match,) = matches(WANTED, fits)
    assert (match.dataset, match.algorithm, match.form) == ("pair", "Uni-Exp", OURS)
    assert (match.ours, match.printed) == (1, 1)
    assert matches(WANTED, fits[:5]) == []


def test_test_rows_drawn_once_give_a_tolerance(monkeypatch):
    wanted = WANTED._replace(algorithms=("LS-SVM",), datasets=("pair",), forms=(OURS,))

    def reason(error):
        found = verdicts(wanted, [{**line(0, 0.75), "auc_se": error}])[0]
        assert found.verdict == BELOW  # chance is a note, not a verdict
        assert found.chance == bool(found.reason)
        assert not found.explained
        return found.reason

    assert reason(0.03) == ""  # each fold is for testing
    plan = toy_paper.PROTOCOL.plans["1"]._replace(split=Validated(2))
    monkeypatch.setitem(toy_paper.PROTOCOL.plans, "1", plan)
    said = "within two standard errors of the AUC on our test rows, 0.0300"
    assert reason(0.03) == said
    assert reason(0.02) == reason(None) == ""


def test_a_test_file_is_the_same_rows_as_in_the_paper():
    assert Given(0.2, 3).once(None)
    assert not Given(0.2, 3).once(100)
    assert Validated(3).once(None)
    assert Validated(3).once(100)  # which half of them is drawn
    assert not Holdout(0.2, 3).once(None)


@pytest.mark.parametrize("spread", [0.001, 0.2])
def test_means_of_draws_are_tested_against_the_printed_one(monkeypatch, spread):
    wanted = WANTED._replace(algorithms=("LS-SVM",), datasets=("pair",), forms=(OURS,))
    areas = 0.775 + spread * np.linspace(-1, 1, 6)
    fits = [line(k, area) for k, area in enumerate(areas)]
    one = verdicts(wanted, fits)[0]
    assert (one.verdict, one.chance) == (BELOW, False)  # they are folds
    plan = toy_paper.PROTOCOL.plans["1"]._replace(split=Holdout(0.2, 10))
    monkeypatch.setitem(toy_paper.PROTOCOL.plans, "1", plan)
    ours, printed = (0.775, areas.std(ddof=1), 6), (0.8, 0.02, 10)
    p_value = ttest_ind_from_stats(*ours, *printed, equal_var=False).pvalue
    one = verdicts(wanted, fits)[0]
    assert (one.verdict, one.chance) == (BELOW, p_value >= 0.05)
    assert one.welch == pytest.approx(p_value)
    assert one.chance == (spread > 0.1)
    assert not verdicts(wanted, fits[:4])[0].chance  # too few of the ten


def test_means_of_folds_are_tested_where_such_are_printed(monkeypatch):
    wanted = WANTED._replace(algorithms=("LS-SVM",), datasets=("pair",), forms=(OURS,))
    plan = toy_paper.PROTOCOL.plans["1"]._replace(means=2)
    monkeypatch.setitem(toy_paper.PROTOCOL.plans, "1", plan)

    def chance(*areas):
        one = verdicts(wanted, [line(k, a) for k, a in enumerate(areas)])[0]
        assert one.verdict == BELOW
        return one.chance

    # Folds that differ say nothing, their means do.
    assert not chance(0.40, 0.50, 0.60, 0.40, 0.50, 0.601)
    assert chance(0.70, 0.70, 0.70, 0.85, 0.85, 0.85)
    assert not chance(0.70, 0.70, 0.70, 0.85, 0.75)  # one whole partition


def test_fits_count_on_a_machine_without_the_data():
    wanted = WANTED._replace(datasets=("gone",), forms=(OURS,))
    (one,) = verdicts(wanted, [])
    assert one.verdict == INCOMPARABLE
    (one,) = verdicts(wanted, [line(0, 0.8, "gone")])
    assert one.verdict == SAME


PAIR = WANTED._replace(datasets=("pair",), tables=("1",))


def pair(form, *areas, algorithm="LS-SVM"):
    return [line(k, a, algorithm=algorithm, form=form) for k, a in enumerate(areas)]


def auc_of(found, algorithm="LS-SVM"):
    return {
        one.form: one
        for one in found
        if one.printed.algorithm == algorithm and one.printed.metric == "auc"
    }


def test_above_by_more_than_a_deviation_is_not_the_same():
    found = auc_of(verdicts(PAIR, pair(PRINTED, 0.825, 0.825) + pair(OURS, 0.9, 0.9)))
    assert found[PRINTED].verdict == found[OURS].verdict == ABOVE
    assert verdict_counts(found.values()) == {OURS: {ABOVE: 1}, PRINTED: {ABOVE: 1}}


def test_welch_stands_beside_the_verdict():
    one = auc_of(verdicts(PAIR, pair(OURS, 0.815, 0.8151, 0.8149)))[OURS]
    p_value = ttest_ind_from_stats(0.815, 1e-4, 3, 0.8, 0.02, 6, equal_var=False).pvalue
    assert (one.verdict, one.welch) == (SAME, pytest.approx(p_value))
    assert auc_of(verdicts(PAIR, pair(OURS, 0.8, 0.81)))[OURS].welch is None  # few runs


def test_cells_of_an_easier_task_are_not_comparable():
    # 0.02 is the deviation of the highest published value, 0.80: 0.84 is the limit.
    fits = pair(PRINTED, 0.845, 0.845) + pair(PRINTED, 0.80, 0.80, algorithm="Uni-Exp")
    fits += pair(OURS, 0.80, 0.80, algorithm="Uni-Exp")
    found = verdicts(PAIR, fits)
    assert auc_of(found, "Uni-Exp")[PRINTED].verdict == SAME
    struck = without_easier(found)
    for name in ("LS-SVM", "Uni-Exp"):
        one = auc_of(struck, name)[PRINTED]
        assert one.verdict == INCOMPARABLE
        assert one.reason == (
            "our task is easier than the paper's: LS-SVM has 0.8450, the highest "
            "published value is 0.8000 (LS-SVM)"
        )
    assert auc_of(struck, "Uni-Exp")[OURS].verdict == INCOMPARABLE
    assert auc_of(struck, "LS-SVM")[OURS].verdict == NOT_RUN


def test_our_improvements_do_not_make_a_task_easier():
    fits = pair(PRINTED, 0.80, 0.80) + pair(OURS, 0.9, 0.9)
    found = auc_of(without_easier(verdicts(PAIR, fits)))
    assert (found[PRINTED].verdict, found[OURS].verdict) == (SAME, ABOVE)
    (only,) = auc_of(
        without_easier(verdicts(PAIR._replace(forms=(OURS,)), fits))
    ).values()
    assert only.verdict == INCOMPARABLE  # no other evidence on the task


def test_a_mean_of_the_runs_that_did_not_fail_is_not_the_same():
    error = "DivergenceError: the weights are not finite"
    fits = pair(PRINTED, 0.8, 0.8, 0.8)
    fits += [{**line(3, 0.0, form=PRINTED), "error": error}]
    one = auc_of(verdicts(PAIR, fits))[PRINTED]
    assert (one.verdict, one.runs, one.failures) == (FAILED, 3, (error,))
    assert one.mean == pytest.approx(0.8)
    assert (one.reason, one.welch) == (error, None)
