"""Verdicts: comparison of our means with the published ones, cell by cell.

*Reproduced*: our mean is not below the published one by more than the published
standard deviation (0.005 if none, or zero, is published); means above by more than that
are marked. *Within error*: our mean is lower, but chance explains the difference. If
each run draws its own test rows, this is Welch's t-test of the two means at 95 %, from
both deviations and numbers of runs, if ours are at least half as many. It is not used
for folds, whose deviation is not that of their mean, unless the paper publishes the
deviation of such means. If the paper drew its test rows once and ours are others, it is
two standard errors of an AUC on so many rows. *Below*: lower than that. *Cannot be
compared*: other rows, another task, another machine, or a value copied from another
paper.

If a paper does not state its class groups, a rule is accepted if no cell of the set is
below under it and our highest mean does not exceed the highest published one by more
than twice its deviation, or 0.01: an easier task would reproduce anything.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_ind_from_stats, ttest_rel

from aucmax.registry import SYSTEMS
from aucmax_reproduction import papers
from aucmax_reproduction.fitting import CEILINGS, EXACT, Effort, given_rows
from aucmax_reproduction.lines import Line
from aucmax_reproduction.papers import Printed
from aucmax_reproduction.protocol import Plan
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

REPRODUCED, ABOVE, BELOW = "reproduced", "reproduced, above", "below"
WITHIN = "within error"
INCOMPARABLE, NOT_RUN, FAILED = "cannot be compared", "not run", "failed"
MET = (REPRODUCED, ABOVE)

_NO_STD = 0.005  # used if no deviation is published
_LEVEL = 0.05
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
    explained: bool = False  # if it is below

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
    within = cell.std or _NO_STD
    if mean < cell.mean - within:
        return BELOW
    return ABOVE if mean > cell.mean + within else REPRODUCED


class Report(NamedTuple):
    """Results of a paper."""

    wanted: Wanted
    effort: Effort
    verdicts: list[Verdict]
    matches: list[Match]

    @classmethod
    def of(cls, wanted: Wanted, effort: Effort, lines: Sequence[Line]) -> "Report":
        """Build the report from result lines."""
        return cls(wanted, effort, verdicts(wanted, lines), matches(wanted, lines))

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
    """Return a verdict for each selected cell and form."""
    values = _values(lines)
    rules = dict(_searched(wanted, lines))
    found: list[Verdict] = []
    ran = {place[:2] for place in values}
    for cell in wanted.cells:
        table, plan = protocol(wanted.source).plan(cell.table)
        missing = why_not_run(cell)
        if missing and (cell.copied or (table, cell.dataset) not in ran):
            found += [_without(cell, "", INCOMPARABLE, missing)]
            continue
        subject = plan.subjects[cell.dataset]
        rule, reason, note = "", why_not_comparable(cell), subject.note
        if subject.unknown:
            rule, tried = rules[table, cell.dataset]
            note = _joined(note, tried)
            if cell.metric != papers.SECONDS:
                reason = "" if rule else _joined(reason, tried)
        for form in forms_of(plan, cell.algorithm, wanted.forms):
            mine = values.get((table, cell.dataset, rule, cell.algorithm, form))
            one = _verdict(cell, form, rule, mine, reason, note)
            if one.verdict == BELOW:
                place = table, cell.dataset, rule
                tops = {by: values.get((*place, by, EXACT)) for by in CEILINGS}
                limit = _limit(cell, plan, tops)
                chance = _by_rows(one, plan, mine) or _by_runs(cell, plan, mine)
                one = one._replace(
                    verdict=WITHIN if chance else BELOW,
                    reason=_joined(note, limit, chance),
                    explained=bool(limit or chance),
                )
            found.append(one)
    return found


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
    for (at, name, rule, algorithm, form), mine in _values(lines).items():
        ran = rule and mine.fits and form != EXACT
        if ran and (at, name) == (table, dataset):
            best = means.setdefault(rule, {})
            mean = float(np.mean(mine.areas(papers.AUC)))
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
    return int(np.sign(difference.mean())) if p_value < _LEVEL else 0


def matches(wanted: Wanted, lines: Sequence[Line]) -> list[Match]:
    """Return the t-tests of a table's reference against the other algorithms."""
    values = _values(lines)
    rules = {place: found[0] for place, found in _searched(wanted, lines)}
    found = []
    for cell in wanted.cells:
        table, plan = protocol(wanted.source).plan(cell.table)
        own = plan.reference in ("", cell.algorithm)
        if own or cell.copied or cell.metric != papers.AUC:
            continue
        rule = rules.get((table, cell.dataset), "")
        for form in forms_of(plan, cell.algorithm, wanted.forms):
            mine = values.get((table, cell.dataset, rule, cell.algorithm, form))
            rival = values.get((table, cell.dataset, rule, plan.reference, form))
            runs = sorted(set(mine.fits) & set(rival.fits)) if mine and rival else []
            if mine and rival and len(runs) > 1:
                first, second = (
                    np.array([fits.fits[run][papers.AUC] for run in runs])
                    for fits in (rival, mine)
                )
                ours, theirs = paired_t(first, second), cell.significance
                place = cell.table, cell.dataset, cell.algorithm
                found += [Match(*place, form, ours, theirs)]
    return found


def verdict_counts(found: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return the number of cells per verdict, by form."""
    counts: dict[str, dict[str, int]] = {}
    for one in found:
        mine = counts.setdefault(one.form, {})
        mine[one.verdict] = mine.get(one.verdict, 0) + 1
    return counts


class _Fits(NamedTuple):
    """The fits of a cell, by run."""

    fits: dict[int, Line]
    errors: list[str]

    def areas(self, metric: str) -> list[float]:
        return [line[metric] for _, line in sorted(self.fits.items())]


def _values(lines: Iterable[Line]) -> Mapping[tuple[str, ...], _Fits]:
    found: dict[tuple[str, ...], _Fits] = {}
    for line in lines:
        place = tuple(
            line[name] for name in ("table", "dataset", "rule", "algorithm", "form")
        )
        mine = found.setdefault(place, _Fits({}, []))
        if "error" in line:
            mine.errors.append(line["error"])
        else:
            mine.fits[line["run"]] = line
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
            mine = [
                line
                for line in lines
                if (line["table"], line["dataset"]) == (table, dataset)
            ]
            tried = len({line["rule"] for line in mine if line["form"] == EXACT})
            near = len({line["rule"] for line in mine if line["form"] != EXACT})
            said = f"{tried} plausible rules tried, {near} come near"
            said += f", under {len(rules)} do all algorithms fit"
            rule = rules[0] if rules else ""
            yield (table, dataset), (rule, said if tried else "--search tries rules")


def _limit(cell: Printed, plan: Plan, tops: Mapping[str, _Fits | None]) -> str:
    """Return a note if the best linear models are below too."""
    known = {by: its.areas(cell.metric) for by, its in tops.items() if its and its.fits}
    system = SYSTEMS[plan.recipes[cell.algorithm].system]
    linear = system.map is None and not system.name.startswith("RBF")
    if not known or not linear or cell.metric == papers.SECONDS:
        return ""
    means = {by: float(np.mean(areas)) for by, areas in known.items()}
    if compare_mean(max(means.values()), cell) != BELOW:
        return ""
    said = " and ".join(f"{by} {mean:.4f}" for by, mean in means.items())
    return f"no linear model gets there: on the same rows have {said}"


def _by_rows(one: Verdict, plan: Plan, mine: _Fits | None) -> str:
    """Return a note if other test rows explain the difference."""
    errors: list[Any] = []
    if mine:
        errors = [line.get("auc_se") for line in mine.fits.values()]
    once = plan.split.once(given_rows(plan.subjects[one.printed.dataset]))
    if one.printed.metric != papers.AUC or not once or None in errors:
        return ""
    error = float(np.mean(errors))
    if one.difference is None or one.difference < -2.0 * error:
        return ""
    return f"within two standard errors of the AUC on our test rows, {error:.4f}"


def _by_runs(cell: Printed, plan: Plan, mine: _Fits | None) -> str:
    """Return a note if the two means do not differ by a t-test."""
    values = _draws(plan, mine, cell.metric)
    theirs = plan.means or plan.split.runs
    if not cell.std or len(values) < max(2, theirs / 2):
        return ""
    ours = float(np.mean(values)), float(np.std(values, ddof=1)), len(values)
    printed = cell.mean, cell.std, theirs
    p_value = float(ttest_ind_from_stats(*ours, *printed, equal_var=False).pvalue)
    if p_value < _LEVEL:
        return ""
    return f"no difference of means by Welch's t-test, p = {p_value:.2f}"


def _draws(plan: Plan, mine: _Fits | None, metric: str) -> list[float]:
    """Return independent values for a t-test; empty if there are none."""
    if mine is None or not isinstance(plan.split, Folds | Holdout):
        return []  # same test rows in every run
    if isinstance(plan.split, Holdout):
        return mine.areas(metric)
    if plan.means is None:
        return []
    whole: dict[int, list[float]] = {}
    for run, line in mine.fits.items():
        whole.setdefault(run // plan.split.folds, []).append(line[metric])
    folds = plan.split.folds
    return [float(np.mean(areas)) for areas in whole.values() if len(areas) == folds]


def _verdict(
    cell: Printed, form: str, rule: str, mine: _Fits | None, reason: str, note: str
) -> Verdict:
    values = mine.areas(cell.metric) if mine else []
    if not values:
        if mine and mine.errors:
            return _without(cell, form, FAILED, mine.errors[0])
        what = INCOMPARABLE if reason else NOT_RUN
        return _without(cell, form, what, reason or note)
    mean = float(np.mean(values))
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    verdict = INCOMPARABLE if reason else compare_mean(mean, cell)
    return Verdict(cell, form, rule, len(values), mean, std, verdict, reason or note)


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _without(cell: Printed, form: str, verdict: str, reason: str) -> Verdict:
    return Verdict(cell, form, "", 0, None, None, verdict, reason)
