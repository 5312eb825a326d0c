"""Rules that group several classes into two, if a paper does not state its rule.

The papers draw two groups of classes at random, or use one class, or the first ones. A
random draw cannot be recovered; the other rules are few and can be tried.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aucmax.tables.labels import Task

_MOST_CLASSES = 30  # with more, single labels and thresholds are too many
_RATIO_SLACK = 0.02  # relative; ratios are published with three digits


class Rule(NamedTuple):
    """The positive labels, and a name for the rule; all other labels are negative."""

    name: str
    positive: tuple[float, ...]

    @property
    def task(self) -> Task:
        """The rule as a task for the readers."""
        return Task.of(self.positive)


def plausible(counts: Mapping[float, int], ratio: float | None = None) -> list[Rule]:
    """Return the plausible rules of a paper.

    Parameters
    ----------
    counts : mapping
        Rows of each label.
    ratio : float, default=None
        Published ratio of the larger class to the smaller one; rules with another
        ratio are left out.

    Returns
    -------
    list of Rule
        First half of the labels, odd against even, most frequent against the rest;
        unless there are too many labels, one against the rest and the first few against
        the others. Only the first of several rules with the same groups.
    """
    labels = sorted(counts)
    half = len(labels) // 2
    rules = [
        Rule("first half of the labels", tuple(labels[:half])),
        Rule("odd labels", tuple(label for label in labels if label % 2 == 1)),
        Rule("most frequent label", (max(labels, key=lambda label: counts[label]),)),
    ]
    if len(labels) <= _MOST_CLASSES:
        rules += [Rule(f"label {label:g}", (label,)) for label in labels]
        rules += [
            Rule(f"labels up to {label:g}", tuple(labels[: k + 1]))
            for k, label in enumerate(labels[:-1])
        ]
    rules = _distinct(rules, labels)
    if ratio is None:
        return rules
    return [
        rule
        for rule in rules
        if abs(_ratio(rule, counts) - ratio) <= _RATIO_SLACK * ratio
    ]


def _distinct(rules: Iterable[Rule], labels: Sequence[float]) -> list[Rule]:
    """Drop rules with an empty group, and repeated groups (also if swapped)."""
    seen: dict[frozenset[frozenset[float]], Rule] = {}
    for rule in rules:
        groups = frozenset(rule.positive), frozenset(labels) - frozenset(rule.positive)
        if all(groups):
            seen.setdefault(frozenset(groups), rule)
    return list(seen.values())


def _ratio(rule: Rule, counts: Mapping[float, int]) -> float:
    ups = sum(counts[label] for label in rule.positive)
    downs = sum(counts.values()) - ups
    return max(ups, downs) / min(ups, downs)
