"""What a paper did to get its tables, as values.

A :class:`Protocol` is a paper; a :class:`Plan` how one of its tables was made; a
:class:`Subject` a data set as the paper had it; a :class:`Recipe` an algorithm with the
parameters it was tuned by.
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
    OURS: "our defaults, nothing tuned",
    TUNED: "ours, tuned around the defaults",
    PRINTED: "as printed, tuned over the paper's grid",
}

PLAIN, SHARE, PAIRS = "plain", "share", "pairs"
_FACTORS = (1 / 64, 1 / 8, 1.0, 8.0, 64.0)  # of a default
_PENALTIES: tuple[Any, ...] = ("auto", 1e-6, 1e-4, 1e-2, 1.0)


class Grid(NamedTuple):
    """The values that a paper tried for a parameter, and what they are units of.

    Of a share p of positives and n₊ n₋ pairs, a value v stands for v (``PLAIN``), for
    v / (p (1 - p)) (``SHARE``), or, as C of a sum over pairs, for 1 / (v n₊ n₋)
    (``PAIRS``).
    """

    values: tuple[float, ...]
    unit: str = PLAIN

    def at(self, y: NDArray[np.bool_], most: int | None) -> list[float]:
        """Return the values for these classes, at most so many of them."""
        p, n = float(np.mean(y)), len(y)
        values = thinned(self.values, most)
        if self.unit == SHARE:
            return [value / (p * (1.0 - p)) for value in values]
        if self.unit == PAIRS:
            return [1.0 / (value * p * (1.0 - p) * n * n) for value in values]
        return values


class Recipe(NamedTuple):
    """An algorithm as a paper ran it."""

    system: str  # a name for aucmax.named
    grid: Mapping[str, Grid] = {}
    settings: Mapping[str, Any] = {}  # of all forms
    printed: Mapping[str, Any] = {}  # of the printed form only
    passes: int | None = None  # over a stream, in the printed form; None: as ``fit``
    most_rows: int | None = None  # that it was trained on
    runs: int | None = None  # fewer than the others had
    tried: Mapping[str, tuple[Any, ...]] = {}  # more to tune ours by, if it has them

    def model(self, form: str, choice: Mapping[str, Any]) -> Any:
        """Return it, not fitted yet, with the values chosen for its parameters."""
        more = {**self.settings, **(self.printed if form == PRINTED else {}), **choice}
        return named(self.system, printed=form == PRINTED, **more)

    def choices(
        self, form: str, y: NDArray[np.bool_], most: int | None
    ) -> dict[str, list[Any]]:
        """Return what is tried for each parameter, at most so many values each."""
        if form == OURS:
            return {}
        if form == PRINTED:
            return {name: grid.at(y, most) for name, grid in self.grid.items()}
        known = self.model(OURS, {}).get_params()
        around = {name: thinned(_around(known, name), most) for name in self.grid}
        more = {key: list(self.tried[key]) for key in self.tried if _owners(known, key)}
        return around | more


class Subject(NamedTuple):
    """A data set as a paper had it."""

    name: str | None  # in the registry; None: it is not there
    part: str | None = None  # of the set
    rule: Rule | None = None  # None: the labels are two
    unknown: bool = False  # how classes became two is not told
    ratio: float | None = None  # of the classes, if it is printed
    scaling: str | None = None  # where it is not that of the table
    merged: bool = False  # training and test file were put together
    note: str = ""  # what is not as printed
    cannot: str = ""  # why it cannot be compared


class Plan(NamedTuple):
    """How a table was made."""

    scaling: str
    split: Split
    folds: int  # to choose parameters by, on the training rows
    recipes: Mapping[str, Recipe]
    subjects: Mapping[str, Subject]
    most_rows: int | None = None  # of a set, drawn at random
    most_train: int | None = None  # of the training rows
    reference: str = ""  # the algorithm that the others are tested against
    means: int | None = None  # that a printed deviation is of; None: of all runs


class Picture(NamedTuple):
    """A figure of a paper: AUC while algorithms learn, or against a parameter."""

    number: str
    table: str  # whose plan it follows
    title: str
    algorithms: tuple[str, ...]
    parameter: str = ""  # none: AUC against rows learnt and seconds
    values: tuple[Any, ...] = ()
    form: str = OURS


class Protocol(NamedTuple):
    """A paper."""

    source: str
    title: str
    plans: Mapping[str, Plan]  # by table
    same_fits: Mapping[str, str] = {}  # table: whose fits it shows
    unsaid: tuple[str, ...] = ()  # by the paper, and what is done here
    pictures: tuple[Picture, ...] = ()

    def plan(self, table: str) -> tuple[str, Plan]:
        """Return the table whose fits a table shows, and how they were made."""
        key = self.same_fits.get(table, table)
        return key, self.plans[key]


def thinned(values: Sequence[Any], most: int | None) -> list[Any]:
    """Return at most so many values, the first and the last among them."""
    if most is None or len(values) <= most:
        return list(values)
    places = np.linspace(0, len(values) - 1, max(most, 1)).round().astype(int)
    return [values[place] for place in places]


def powers(
    base: float, first: int, last: int, factor: float = 1.0
) -> tuple[float, ...]:
    """Return the powers of a base between two exponents."""
    return tuple(factor * base**k for k in range(first, last + 1))


def of_words(recipes: Mapping[str, Recipe]) -> dict[str, Recipe]:
    """Return them with the choice of whether rare words are to be scaled up."""
    choice = {"precondition": (True, False)}
    return {name: one._replace(tried=choice) for name, one in recipes.items()}


def _owners(known: Mapping[str, Any], name: str) -> list[str]:
    """Return the parameters of that name, of a model or of parts of it."""
    return [key for key in known if key.rpartition("__")[2] == name]


def _around(known: Mapping[str, Any], name: str) -> Sequence[Any]:
    """Return values around the default of a parameter."""
    default = known[_owners(known, name)[0]]
    if default is None or isinstance(default, str):
        return _PENALTIES if name == "l2" else (default,)
    return [factor * default for factor in _FACTORS]
