"""Experimental protocols of the papers, as data.

A :class:`Protocol` describes a paper, a :class:`Plan` one of its tables, a
:class:`Subject` a data set as the paper used it, and a :class:`Recipe` an algorithm
with the parameters that were tuned.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.registry import named
from aucmax_reproduction.groupings import Rule
from aucmax_reproduction.splits import Split

OURS, TUNED, PRINTED = "ours", "tuned", "printed"
FORMS = {
    PRINTED: "as published, with corrections",
    OURS: "our defaults, nothing tuned",
    TUNED: "ours, tuned around the defaults",
}

PLAIN, SHARE, PAIRS = "plain", "share", "pairs"
_FACTORS = (1 / 64, 1 / 8, 1.0, 8.0, 64.0)  # of the default
_PENALTIES: tuple[Any, ...] = ("auto", 1e-6, 1e-4, 1e-2, 1.0)


class Grid(NamedTuple):
    """Parameter grid of a paper, and the unit of its values.

    With a share p of positives and n₊ n₋ pairs, a value v means v (``PLAIN``),
    v / (p (1 - p)) (``SHARE``) or, as C of a sum over pairs, 1 / (v n₊ n₋)
    (``PAIRS``).
    """

    values: tuple[float, ...]
    unit: str = PLAIN

    def at(self, y: NDArray[np.bool_], most: int | None) -> list[float]:
        """Return at most ``most`` values for these classes."""
        p, n = float(np.mean(y)), len(y)
        values = thinned(self.values, most)
        if self.unit == SHARE:
            return [value / (p * (1.0 - p)) for value in values]
        if self.unit == PAIRS:
            return [1.0 / (value * p * (1.0 - p) * n * n) for value in values]
        return values


class Recipe(NamedTuple):
    """An algorithm as a paper ran it."""

    system: str  # name for aucmax.named
    grid: Mapping[str, Grid] = {}
    settings: Mapping[str, Any] = {}  # for all forms
    printed: Mapping[str, Any] = {}  # for the form as published only
    passes: int | None = None  # over a stream, as published; None: use ``fit``
    most_rows: int | None = None  # maximum number of training rows
    runs: int | None = None  # if fewer than the other algorithms
    tried: Mapping[str, tuple[Any, ...]] = {}  # further parameters to tune our form by

    def model(self, form: str, choice: Mapping[str, Any]) -> Any:
        """Return the unfitted model with the chosen parameters."""
        more = {**self.settings, **(self.printed if form == PRINTED else {}), **choice}
        return named(self.system, printed=form == PRINTED, **more)

    def choices(
        self, form: str, y: NDArray[np.bool_], most: int | None
    ) -> dict[str, list[Any]]:
        """Return at most ``most`` values to try for each parameter."""
        if form == OURS:
            return {}
        if form == PRINTED:
            return {name: grid.at(y, most) for name, grid in self.grid.items()}
        known = self.model(OURS, {}).get_params()
        around = {name: thinned(_around(known, name), most) for name in self.grid}
        more = {key: list(self.tried[key]) for key in self.tried if _owners(known, key)}
        return around | more


class Subject(NamedTuple):
    """A data set as a paper used it."""

    name: str | None  # in the registry; None: not there
    part: str | None = None  # of the set
    rule: Rule | None = None  # None: two labels
    unknown: bool = False  # the paper does not state the class groups
    ratio: float | None = None  # of the classes, if published
    scaling: str | None = None  # if different from that of the table
    merged: bool = False  # training and test file are merged
    note: str = ""  # differences from the paper
    cannot: str = ""  # reason why it cannot be compared
    files: tuple[str, ...] = ()  # of the user: training file, and test file if any


class Plan(NamedTuple):
    """Protocol of a table."""

    scaling: str
    split: Split
    folds: int  # for choosing parameters on the training rows
    recipes: Mapping[str, Recipe]
    subjects: Mapping[str, Subject]
    most_rows: int | None = None  # random sample of the set
    most_train: int | None = None  # maximum number of training rows
    reference: str = ""  # algorithm that the others are tested against
    means: int | None = None  # number of means behind a published deviation; None: runs


CURVE, TIMES, IMBALANCE = "curve", "times", "imbalance"


class Picture(NamedTuple):
    """A figure of a paper.

    ``CURVE``: AUC against training rows and seconds, or against a parameter.
    ``TIMES``: seconds to train of all sets of a table. ``IMBALANCE``: accuracy against
    the ratio of the classes.
    """

    number: str
    table: str  # whose plan is used
    title: str
    algorithms: tuple[str, ...]
    parameter: str = ""  # empty: AUC against training rows and seconds
    values: tuple[Any, ...] = ()
    form: str = OURS
    kind: str = CURVE


class Protocol(NamedTuple):
    """A paper."""

    source: str
    title: str
    plans: Mapping[str, Plan]  # by table
    same_fits: Mapping[str, str] = {}  # table: other table with the same fits
    unstated: tuple[str, ...] = ()  # details that the paper omits, and our choice
    pictures: tuple[Picture, ...] = ()

    def plan(self, table: str) -> tuple[str, Plan]:
        """Return the table that has the fits of ``table``, and its plan."""
        key = self.same_fits.get(table, table)
        return key, self.plans[key]


def thinned(values: Sequence[Any], most: int | None) -> list[Any]:
    """Return at most ``most`` values, including the first and the last."""
    if most is None or len(values) <= most:
        return list(values)
    places = np.linspace(0, len(values) - 1, max(most, 1)).round().astype(int)
    return [values[place] for place in places]


def powers(
    base: float, first: int, last: int, factor: float = 1.0
) -> tuple[float, ...]:
    """Return ``factor`` times the powers of a base between two exponents."""
    return tuple(factor * base**k for k in range(first, last + 1))


def of_words(recipes: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Return the recipes with ``precondition`` as a further parameter to tune."""
    choice = {"precondition": (True, False)}
    return {name: one._replace(tried=choice) for name, one in recipes.items()}


def _owners(known: Mapping[str, Any], name: str) -> list[str]:
    """Return the parameters with this name, of a model or of its parts."""
    return [key for key in known if key.rpartition("__")[2] == name]


def _around(known: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return values around the default of a parameter."""
    default = known[_owners(known, name)[0]]
    if default is None or isinstance(default, str):
        return _PENALTIES if name == "l2" else (default,)
    return [factor * default for factor in _FACTORS]
