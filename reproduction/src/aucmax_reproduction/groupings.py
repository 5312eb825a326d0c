"""How several classes may have become two, where a paper does not say.

The papers draw two groups of classes at random, or take one class, or the first ones.
A random draw cannot be found again; the other rules are few, and can be tried.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aucmax.tables.labels import Task

_MOST_CLASSES = 30  # of more, single ones and thresholds are too many to try
_RATIO_SLACK = 0.02  # relative; ratios are printed with three digits


class Rule(NamedTuple):
    """The labels that are positive, all others being negative; and why these."""

    name: str
    positive: tuple[float, ...]

    @property
    def task(self) -> Task:
        """The rule as the readers of data take it."""
        return Task.of(self.positive)


def plausible(counts: Mapping[float, int], ratio: float | None = None) -> list[Rule]:
    """Return the rules that a paper may have meant.

    Parameters
    ----------
    counts : mapping
        Rows of each label.
    ratio : float, default=None
        Rows of the larger class by those of the smaller one, as printed; rules with
        another one are left out.

    Returns
    -------
    list of Rule
        Halves in the order of the labels, odd against even, the most frequent against
        the rest; one against the rest and the first few against the others, unless
        there are too many labels. Of rules that give the same groups, the first.
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
    """Return the rules with both groups filled; sides swapped are the same groups."""
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
