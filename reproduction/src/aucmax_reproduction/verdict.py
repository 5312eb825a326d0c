"""Verdicts: comparison of our means with the published ones, cell by cell.

*Same*: our mean is within one published standard deviation of the published mean, on
both sides (0.005 if none, or zero, is published). *Above*, *below*: it is not. Welch's
t-test of the two means is shown beside the verdict and does not change it. *Failed*: a
run diverged or failed. The mean of the other runs is shown but not compared, because
the runs that fail are not a random sample. *Not comparable*: other rows, another task,
another machine, or a value copied from another paper.

**Easier task.** If the highest mean of a table's algorithms on a set is above the
highest published one by more than twice its deviation, or 0.01, our task is easier than
the paper's and would reproduce anything: no cell of the set is compared. The evidence
is the form as published, or our forms if that one was not run. A rule for class groups
that a paper does not state is accepted on the same condition, if no cell is below.

**Notes.** A cell that is below is *explained* if the best linear models on the same
rows are below too. Its difference is *within chance* by Welch's t-test at 95 %, if each
run draws its own test rows and our runs are at least half as many as the paper's; or by
two standard errors of an AUC, if the paper drew its test rows once and ours are others.
The test is not used for folds, whose deviation is not that of their mean, unless the
paper publishes the deviation of such means.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_ind_from_stats, ttest_rel

from aucmax.registry import SYSTEMS
from aucmax_reproduction import papers
from aucmax_reproduction.fitting import CEILINGS, EXACT, Effort, has_test_file
from aucmax_reproduction.lines import Line
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import PRINTED, Plan
from aucmax_reproduction.protocols import protocol
from aucmax_reproduction.reproduce import (
    Wanted,
    best_printed,
    forms_of,
    slack,
    why_not_comparable,
    why_not_run,
)
from aucmax_reproduction.splits import Folds, Holdout

SAME, ABOVE, BELOW, FAILED = "same", "above", "below", "failed"
INCOMPARABLE, NOT_RUN = "not comparable", "not run"
COMPARED = (SAME, ABOVE, BELOW, FAILED)

_NO_STD = 0.005  # used if no deviation is published
LEVEL = 0.05
_FEWEST = 3  # runs for Welch's t-test beside a verdict
_ROUNDING = 1e-12


class Verdict(NamedTuple):
    """Comparison of a published cell with one of our forms."""

    printed: Printed
    form: str
    rule: str  # for the class groups, if it was searched
    runs: int
    mean: float | None
    std: float | None  # None: single run
    verdict: str
    reason: str  # why not comparable or failed, or differences from the paper
    explained: bool = False  # below, and so are the best linear models
    chance: bool = False  # below, but within chance
    welch: float | None = None  # p-value of the difference of means
    failures: tuple[str, ...] = ()  # errors of the failed runs

    @property
    def difference(self) -> float | None:
        """Our mean minus the published one."""
        return None if self.mean is None else self.mean - self.printed.mean

    def summary(self) -> dict[str, Any]:
        """Return all fields for JSON and CSV."""
        cell = self.printed
        return {
            "table": cell.table,
            "dataset": cell.dataset,
            "algorithm": cell.algorithm,
            "metric": cell.metric,
            "form": self.form,
            "printed": cell.mean,
            "printed_std": cell.std,
            "ours": self.mean,
            "ours_std": self.std,
            "runs": self.runs,
            "difference": self.difference,
            "verdict": self.verdict,
            "rule": self.rule,
            "reason": self.reason,
            "explained": self.explained,
            "chance": self.chance,
            "welch_p": self.welch,
            "failed_runs": len(self.failures),
        }


class Match(NamedTuple):
    """t-test of the paper's own algorithm against another one on a set."""

    table: str
    dataset: str
    algorithm: str
    form: str
    ours: int  # +1: own algorithm better, -1: worse, 0: no difference at 95 %
    printed: int


def compare_mean(mean: float, cell: Printed) -> str:
    """Return the verdict on a mean."""
    tolerance = cell.std or _NO_STD
    if abs(mean - cell.mean) <= tolerance + _ROUNDING:
        return SAME
    return ABOVE if mean > cell.mean else BELOW


class Report(NamedTuple):
    """Results of a paper."""

    wanted: Wanted
    effort: Effort
    verdicts: list[Verdict]
    matches: list[Match]

    @classmethod
    def of(cls, wanted: Wanted, effort: Effort, lines: Sequence[Line]) -> "Report":
        """Build the report from result lines."""
        found = without_easier(verdicts(wanted, lines))
        return cls(wanted, effort, found, matches(wanted, lines))

    def summary(self) -> dict[str, Any]:
        """Return all results for JSON."""
        return {
            **self.wanted._asdict(),
            **self.effort._asdict(),
            "counts": verdict_counts(self.verdicts),
            "cells": [one.summary() for one in self.verdicts],
            "t_tests": [one._asdict() for one in self.matches],
        }


def verdicts(wanted: Wanted, lines: Sequence[Line]) -> list[Verdict]:
    """Return a verdict for each selected cell and form, easier tasks included."""
    fits = _by_cell(lines)
    rules = dict(_searched(wanted, lines))
    found: list[Verdict] = []
    ran = {place[:2] for place in fits}
    for cell in wanted.cells:
        table, plan = protocol(wanted.source).plan(cell.table)
        missing = why_not_run(cell)
        if missing and (cell.copied or (table, cell.dataset) not in ran):
            found += [Verdict(cell, "", "", 0, None, None, INCOMPARABLE, missing)]
            continue
        subject = plan.subjects[cell.dataset]
        rule, reason, note = "", why_not_comparable(cell), subject.note
        if subject.unknown:
            rule, tried = rules[table, cell.dataset]
            note = _joined(note, tried)
            if cell.metric != papers.SECONDS:
                reason = "" if rule else _joined(reason, tried)
        for form in forms_of(plan, cell.algorithm, wanted.forms):
            cell_fits = fits.get((table, cell.dataset, rule, cell.algorithm, form))
            one = _verdict(cell, form, rule, cell_fits or _Fits({}, {}), reason, note)
            if cell_fits and one.verdict in (SAME, ABOVE, BELOW):
                one = one._replace(
                    welch=_welch(cell, plan, cell_fits.areas(cell.metric))
                )
            if cell_fits and one.verdict == BELOW:
                place = table, cell.dataset, rule
                exact = {by: fits.get((*place, by, EXACT)) for by in CEILINGS}
                limit = _limit(cell, plan, exact)
                chance = _by_rows(one, plan, cell_fits) or _by_runs(
                    cell, plan, cell_fits
                )
                one = one._replace(
                    reason=_joined(note, limit, chance),
                    explained=bool(limit),
                    chance=bool(chance),
                )
            found.append(one)
    return found


def without_easier(found: Sequence[Verdict]) -> list[Verdict]:
    """Mark the cells of tasks that are easier than the published ones."""
    means: dict[tuple[str, ...], dict[bool, dict[str, float]]] = {}
    for one in found:
        if one.verdict in (SAME, ABOVE, BELOW) and one.mean is not None:
            forms = means.setdefault(_task(one.printed), {})
            highest = forms.setdefault(one.form == PRINTED, {})
            name = one.printed.algorithm
            highest[name] = max(one.mean, highest.get(name, one.mean))
    reasons = {task: _easier(task, forms) for task, forms in means.items()}
    return [
        one._replace(verdict=INCOMPARABLE, reason=reason, explained=False, chance=False)
        if (reason := reasons.get(_task(one.printed))) and one.verdict in COMPARED
        else one
        for one in found
    ]


def _task(cell: Printed) -> tuple[str, str, str, str]:
    return cell.source, cell.table, cell.dataset, cell.metric


def _easier(task: tuple[str, ...], forms: Mapping[bool, Mapping[str, float]]) -> str:
    """Return why a task is easier than the published one; empty if it is not."""
    means = forms.get(True) or forms[False]
    name = max(means, key=lambda name: means[name])
    highest = best_printed(*task)
    if means[name] <= highest.mean + slack(highest):
        return ""
    return (
        f"our task is easier than the paper's: {name} has {means[name]:.4f}, the "
        f"highest published value is {highest.mean:.4f} ({highest.algorithm})"
    )


def fitting_rules(
    source: str, table: str, dataset: str, lines: Iterable[Line]
) -> list[str]:
    """Return the rules under which all algorithms fit, best match first."""
    printed = {
        cell.algorithm: cell
        for cell in papers.cells(source, [table], [dataset])
        if cell.metric == papers.AUC and not cell.copied
    }
    means: dict[str, dict[str, float]] = {}
    for (at, name, rule, algorithm, form), cell_fits in _by_cell(lines).items():
        ran = rule and cell_fits.fits and form != EXACT
        if ran and (at, name) == (table, dataset):
            best = means.setdefault(rule, {})
            mean = float(np.mean(cell_fits.areas(papers.AUC)))
            best[algorithm] = max(mean, best.get(algorithm, -np.inf))  # of its forms
    highest = best_printed(source, table, dataset)
    off = {
        rule: abs(max(ours.values()) - highest.mean)
        for rule, ours in means.items()
        if set(ours) == set(printed)
        and all(
            compare_mean(mean, printed[name]) != BELOW for name, mean in ours.items()
        )
        and max(ours.values()) <= highest.mean + slack(highest)
    }
    return sorted(off, key=lambda rule: off[rule])


def paired_t(first: NDArray[Any], second: NDArray[Any]) -> int:
    """Return +1 if the first is better on the same runs at 95 %, -1 if worse, else 0.

    This is the plain t-test of the papers. It assumes independent runs, which they are
    not, and finds too many differences.
    """
    difference = np.asarray(first) - np.asarray(second)
    if len(difference) < 2 or not difference.any():
        return 0
    if np.ptp(difference) < _ROUNDING:
        return int(np.sign(difference[0]))
    p_value = float(ttest_rel(first, second).pvalue)
    return int(np.sign(difference.mean())) if p_value < LEVEL else 0


def matches(wanted: Wanted, lines: Sequence[Line]) -> list[Match]:
    """Return the t-tests of a table's reference against the other algorithms."""
    fits = _by_cell(lines)
    rules = {place: found[0] for place, found in _searched(wanted, lines)}
    found = []
    for cell in wanted.cells:
        table, plan = protocol(wanted.source).plan(cell.table)
        own = plan.reference in ("", cell.algorithm)
        if own or cell.copied or cell.metric != papers.AUC:
            continue
        rule = rules.get((table, cell.dataset), "")
        for form in forms_of(plan, cell.algorithm, wanted.forms):
            cell_fits = fits.get((table, cell.dataset, rule, cell.algorithm, form))
            rival = fits.get((table, cell.dataset, rule, plan.reference, form))
            runs = (
                sorted(set(cell_fits.fits) & set(rival.fits))
                if cell_fits and rival
                else []
            )
            if cell_fits and rival and len(runs) > 1:
                first, second = (
                    np.array([one.fits[run][papers.AUC] for run in runs])
                    for one in (rival, cell_fits)
                )
                ours, theirs = paired_t(first, second), cell.significance
                place = cell.table, cell.dataset, cell.algorithm
                found += [Match(*place, form, ours, theirs)]
    return found


def verdict_counts(found: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return the number of cells per verdict, by form."""
    counts: dict[str, dict[str, int]] = {}
    for one in found:
        count = counts.setdefault(one.form, {})
        count[one.verdict] = count.get(one.verdict, 0) + 1
    return counts


class _Fits(NamedTuple):
    """The fits of a cell, by run."""

    fits: dict[int, Line]
    errors: dict[int, str]

    def areas(self, metric: str) -> list[float]:
        return [line[metric] for _, line in sorted(self.fits.items())]


def _by_cell(lines: Iterable[Line]) -> Mapping[tuple[str, ...], _Fits]:
    found: dict[tuple[str, ...], _Fits] = {}
    for line in lines:
        place = tuple(
            line[name] for name in ("table", "dataset", "rule", "algorithm", "form")
        )
        cell_fits = found.setdefault(place, _Fits({}, {}))
        if "error" in line:
            cell_fits.errors[line["run"]] = line["error"]
        else:
            cell_fits.fits[line["run"]] = line
    return found


def _searched(
    wanted: Wanted, lines: Sequence[Line]
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield tables and sets of unknown class groups, with the rule and a note."""
    places = dict.fromkeys(
        (protocol(wanted.source).plan(cell.table)[0], cell.dataset)
        for cell in wanted.cells
    )
    for table, dataset in places:
        _, plan = protocol(wanted.source).plan(table)
        if plan.subjects[dataset].unknown:
            rules = fitting_rules(wanted.source, table, dataset, lines)
            own = [
                line
                for line in lines
                if (line["table"], line["dataset"]) == (table, dataset)
            ]
            tried = len({line["rule"] for line in own if line["form"] == EXACT})
            near = len({line["rule"] for line in own if line["form"] != EXACT})
            text = f"{tried} plausible rules tried, {near} come near"
            text += f", under {len(rules)} do all algorithms fit"
            rule = rules[0] if rules else ""
            yield (table, dataset), (rule, text if tried else "--search tries rules")


def _limit(cell: Printed, plan: Plan, exact: Mapping[str, _Fits | None]) -> str:
    """Return a note if the best linear models are below too."""
    areas = {by: fits.areas(cell.metric) for by, fits in exact.items() if fits}
    means = {by: float(np.mean(values)) for by, values in areas.items() if values}
    system = SYSTEMS[plan.recipes[cell.algorithm].system]
    linear = system.map is None and not system.name.startswith("RBF")
    if not means or not linear or cell.metric == papers.SECONDS:
        return ""
    if compare_mean(max(means.values()), cell) != BELOW:
        return ""
    values = " and ".join(f"{by} {mean:.4f}" for by, mean in means.items())
    return f"the best linear models on the same rows are below too: {values}"


def _by_rows(one: Verdict, plan: Plan, cell_fits: _Fits) -> str:
    """Return a note if other test rows explain the difference."""
    errors: list[Any] = [line.get("auc_se") for line in cell_fits.fits.values()]
    once = plan.split.once(has_test_file(plan.subjects[one.printed.dataset]))
    if one.printed.metric != papers.AUC or not once or None in errors:
        return ""
    error = float(np.mean(errors))
    if one.difference is None or one.difference < -2.0 * error:
        return ""
    return f"within two standard errors of the AUC on our test rows, {error:.4f}"


def _by_runs(cell: Printed, plan: Plan, cell_fits: _Fits) -> str:
    """Return a note if the two means do not differ by a t-test."""
    values = _draws(plan, cell_fits, cell.metric)
    if len(values) < max(2, (plan.means or plan.split.runs) / 2):
        return ""
    p_value = _welch(cell, plan, values, fewest=2)
    if p_value is None or p_value < LEVEL:
        return ""
    return f"no difference of means by Welch's t-test, p = {p_value:.2f}"


def _welch(
    cell: Printed, plan: Plan, values: Sequence[float], fewest: int = _FEWEST
) -> float | None:
    """Return the p-value of the difference of means; None if it cannot be tested."""
    if not cell.std or len(values) < fewest:
        return None
    ours = float(np.mean(values)), float(np.std(values, ddof=1)), len(values)
    printed = cell.mean, cell.std, plan.means or plan.split.runs
    return float(ttest_ind_from_stats(*ours, *printed, equal_var=False).pvalue)


def _draws(plan: Plan, cell_fits: _Fits, metric: str) -> list[float]:
    """Return independent values for a t-test; empty if there are none."""
    if isinstance(plan.split, Holdout):
        return cell_fits.areas(metric)
    if not isinstance(plan.split, Folds) or plan.means is None:
        return []  # the same test rows in every run, or folds of one partition
    whole: dict[int, list[float]] = {}
    for run, line in cell_fits.fits.items():
        whole.setdefault(run // plan.split.folds, []).append(line[metric])
    folds = plan.split.folds
    return [float(np.mean(areas)) for areas in whole.values() if len(areas) == folds]


def _verdict(
    cell: Printed, form: str, rule: str, cell_fits: _Fits, reason: str, note: str
) -> Verdict:
    values = cell_fits.areas(cell.metric)
    mean = float(np.mean(values)) if values else None
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    errors = tuple(error for _, error in sorted(cell_fits.errors.items()))
    if reason:
        verdict = INCOMPARABLE
    elif errors:
        verdict, note = FAILED, _joined(note, errors[0].split(". ")[0])
    else:
        verdict = NOT_RUN if mean is None else compare_mean(mean, cell)
    return Verdict(
        cell,
        form,
        rule,
        len(values),
        mean,
        std,
        verdict,
        reason or note,
        failures=errors,
    )


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))
