"""Schema: which columns of a table become which features.

A :class:`Schema` has the kind of each column and the label. It is all that is needed to
build the same features from other files, and is stored in model files.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import MISSING as REQUIRED
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from itertools import accumulate
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from aucmax.tables.column_kinds import (
    CATEGORY,
    DATE,
    LEFT_OUT,
    NUMBER,
    OTHER,
    TEXT,
    WANTED,
    YES_NO,
    Column,
    Sample,
    find_role,
)
from aucmax.tables.missing_values import check_markers

Encode = Literal["auto", "hash", "onehot", "codes"]
Missing = Literal["auto", "error", "impute", "zero", "keep"]
_OURS = ("codes", "keep")  # for models that take categories and missing values

# The numbers that a date becomes.
OF_A_DATE = ("time", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "hour")
OF_A_CODED_DATE = ("time", "month", "weekday", "hour")
_KINDS = {CATEGORY: "categorical", TEXT: "text", NUMBER: "numeric", DATE: "date"}
FEWEST_HASHED, MOST_HASHED = 1 << 12, 1 << 18
MOST_VALUES = 1 << 22  # of all one-hot columns together: names and weights need memory


@dataclass(frozen=True)
class Overrides:
    """Kinds of columns and options set by the user; columns by name or position."""

    label: str | int | None = None
    weight: str | int | None = None
    drop: Sequence[str | int] = ()
    only: Sequence[str | int] | None = None
    categorical: Sequence[str | int] = ()
    text: Sequence[str | int] = ()
    numeric: Sequence[str | int] = ()
    date: Sequence[str | int] = ()
    encode: Encode = "auto"
    hash_size: int | None = None
    missing: Missing = "auto"
    na: Sequence[str] = ()  # missing-value markers, beside MISSING
    decimal: str | None = None  # decimal separator, if 1,234 is ambiguous

    def __post_init__(self) -> None:
        check_markers(self.na)
        if self.decimal not in (None, ",", "."):
            raise ValueError(f"decimal must be ',' or '.', not {self.decimal!r}")
        for name, kinds in (("encode", Encode), ("missing", Missing)):
            given = getattr(self, name)
            if given not in get_args(kinds):
                known = ", ".join(repr(k) for k in get_args(kinds) if k not in _OURS)
                raise ValueError(f"{name} must be one of {known}, not {given!r}")
        size = self.hash_size
        if size is not None and not (
            isinstance(size, Integral) and 1 <= size < 1 << 31
        ):
            raise ValueError(f"hash_size must be from 1 to 2147483647, not {size!r}")

    def named(self) -> list[str]:
        """Return the columns given by name, not by position."""
        kinds = self.categorical, self.text, self.numeric, self.date
        several = (self.drop, self.only or (), *kinds)
        called = [self.label, self.weight, *(one for some in several for one in some)]
        return [
            one
            for one in called
            if isinstance(one, str) and not re.fullmatch(r"\s*[+-]?\d+\s*", one)
        ]


@dataclass(frozen=True)
class Schema:
    """Mapping from columns to features."""

    columns: list[str]  # all columns of the data, in order
    header: bool  # if False, the names of the columns are their positions
    numbers: list[str]
    categories: list[str]
    texts: list[str]
    label: str | None
    label_is_number: bool
    weight: str | None
    encode: str
    hash_size: int
    missing: Missing
    means: list[float] = field(default_factory=list)  # of numbers, when imputing
    values: list[list[str]] = field(default_factory=list)  # one-hot, by category
    # Found by "auto"; absent in the recipes of old files.
    tails: list[int] = field(default_factory=list)  # features of other values, likewise
    spelt: list[str] = field(default_factory=list)  # categories that are yes or no
    notated: list[str] = field(default_factory=list)  # numbers in a number format
    dates: list[str] = field(default_factory=list)
    notation: dict[str, str] = field(default_factory=dict)  # of these two
    flagged: list[str] = field(default_factory=list)  # numbers with a feature "missing"
    fills: dict[str, float] = field(default_factory=dict)  # for missing numbers
    roles: list[dict[str, Any]] = field(default_factory=list)  # column_kinds.Column
    na: list[str] = field(default_factory=list)  # missing-value markers

    @property
    def learns(self) -> bool:
        """Whether fitting takes a pass over all data."""
        imputes = self.missing == "impute" and bool(self.numbers)
        listed = self.encode in ("onehot", "codes") and bool(self.categories)
        return (imputes and not self.means) or (listed and not self.values)

    @property
    def date_parts(self) -> tuple[str, ...]:
        """Names of the features of a date."""
        return OF_A_CODED_DATE if self.encode == "codes" else OF_A_DATE

    @property
    def n_levels(self) -> list[int]:
        """Number of values of each coded feature; 0 for a number."""
        if self.encode != "codes":
            return [0] * self.n_features
        return [0] * self.n_numbers + [len(values) + 1 for values in self.values]

    @property
    def n_onehot(self) -> int:
        """Number of features of categories."""
        if self.encode == "codes":
            return len(self.categories)
        return sum(map(len, self.values)) + sum(self.tails)

    @property
    def n_numbers(self) -> int:
        """Number of numeric features, parsed ones included."""
        plain = len(self.numbers) + len(self.notated) + len(self.flagged)
        return plain + len(self.date_parts) * len(self.dates)

    @property
    def hashed(self) -> int:
        """Number of hashed features."""
        any_hashed = self.texts or (self.categories and self.encode == "hash")
        return self.hash_size if any_hashed else 0

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.n_numbers + self.n_onehot + self.hashed

    @property
    def fill(self) -> NDArray[np.float64]:
        """Values that replace missing numbers."""
        if self.missing == "keep":
            return np.full(len(self.numbers), np.nan)
        if self.missing == "auto":
            return np.array([self.fills.get(name, 0.0) for name in self.numbers])
        return np.array(self.means or [0.0] * len(self.numbers))

    def needed(self) -> list[str]:
        """Return the columns that features are built from."""
        others = [*self.notated, *self.dates]
        return [*self.numbers, *others, *self.categories, *self.texts]

    def feature_names(self, features: Sequence[int] | None = None) -> list[str]:
        """Return the names of features, by default of all.

        Only these names are built: a small file can claim billions of features.
        """
        dates = [f"{name}: {part}" for name in self.dates for part in self.date_parts]
        flags = [f"{name} is missing" for name in self.flagged]
        numbers = [*self.numbers, *self.notated, *dates, *flags]
        if self.encode == "codes":
            numbers += self.categories
        tails = self.tails or [0] * len(self.categories)
        onehot = (
            []
            if self.encode == "codes"
            else list(zip(self.categories, self.values, tails, strict=False))
        )
        sizes = [len(values) + tail for _, values, tail in onehot]
        starts = list(accumulate(sizes, initial=len(numbers)))

        def name(index: int) -> str:
            if index < len(numbers):
                return numbers[index]
            if index >= starts[-1]:
                return f"hash_{index - starts[-1]}"
            group = bisect_right(starts, index) - 1
            (column, values, tail), place = onehot[group], index - starts[group]
            if place < len(values):
                return f"{column}={values[place]}"
            return f"{column}={OTHER if tail == 1 else f'#{place - len(values)}'}"

        return list(map(name, range(self.n_features) if features is None else features))

    def feature_columns(self) -> list[str]:
        """Return the source column of each feature."""
        dates = [name for name in self.dates for _ in self.date_parts]
        numbers = [*self.numbers, *self.notated, *dates, *self.flagged]
        hashed = [f"hash_{i}" for i in range(self.hashed)]
        if self.encode == "codes":
            return [*numbers, *self.categories, *hashed]
        tails = self.tails or [0] * len(self.categories)
        onehot = [
            column
            for column, values, tail in zip(
                self.categories, self.values, tails, strict=False
            )
            for _ in range(len(values) + tail)
        ]
        return [*numbers, *onehot, *hashed]

    def feature_categories(self) -> NDArray[np.int64]:
        """Return the number of the category of each one-hot feature; -1 for others."""
        found = np.full(self.n_features, -1)
        if self.encode != "codes":
            tails = self.tails or [0] * len(self.values)
            sizes = [len(v) + t for v, t in zip(self.values, tails, strict=True)]
            end = self.n_numbers + self.n_onehot
            found[self.n_numbers : end] = np.repeat(np.arange(len(sizes)), sizes)
        return found

    def to_json(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, recipe: Mapping[str, Any]) -> "Schema":
        """Return the schema from the result of :meth:`to_json`."""
        known = [f.name for f in fields(cls)]
        required = [f.name for f in fields(cls) if f.default_factory is REQUIRED]
        if missing := {*required} - recipe.keys():
            raise ValueError(f"the recipe does not say {', '.join(sorted(missing))}")
        return cls(**{name: recipe[name] for name in known if name in recipe})


def find(names: Sequence[str], wanted: str | int, what: str = "column") -> int:
    """Return the position of a column given by name or position."""
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    try:
        position = int(wanted)
    except ValueError:
        raise ValueError(
            f"no {what} {wanted!r}{_hint(str(wanted), names)}; there are {_list(names)}"
        ) from None
    if not -len(names) <= position < len(names):
        raise ValueError(
            f"no {what} {wanted!r}: there are {len(names)} columns, {_list(names)}"
        )
    return position % len(names)


def _hint(wanted: str, names: Sequence[str]) -> str:
    """Return a suggestion for a misspelt name, in brackets."""
    spelled = {name.strip().casefold(): name for name in reversed(names)}
    near = get_close_matches(wanted.strip().casefold(), spelled, n=1)
    return f" (did you mean {spelled[near[0]]!r}?)" if near else ""


def make_schema(
    names: Sequence[str],
    samples: Sequence[Sample],
    overrides: Overrides,
    header: bool = True,
) -> Schema:
    """Infer the kind of each column from its first rows and the overrides."""
    label = weight = None
    if overrides.label is not None:
        label = find(names, overrides.label, "label column")
    if overrides.weight is not None:
        weight = find(names, overrides.weight, "weight column")
    if label is not None and label == weight:
        raise ValueError(f"column {names[label]!r} cannot be label and weight at once")
    wanted = _wanted(names, overrides)
    dropped = {find(names, one, "column to drop") for one in overrides.drop}
    if overrides.only is not None:
        only = {find(names, one) for one in overrides.only}
        dropped |= set(range(len(names))) - only
        if label in only or weight in only:
            raise ValueError(
                "the columns to use include the label or the weight: remove it"
            )
        wanted = dict.fromkeys(only, WANTED) | wanted
    features = sorted(set(range(len(names))) - dropped - {label, weight})
    found = [
        find_role(names[i], samples[i], wanted.get(i), overrides.decimal)
        for i in features
    ]
    coded = overrides.encode == "codes"
    used = [c for c in found if c.role not in LEFT_OUT]
    if not used:
        why = "; ".join(f"{column.name!r} is {column.role}" for column in found)
        raise ValueError("no feature columns are left" + (why and f": {why}"))

    def named(*roles: str) -> list[str]:
        return [column.name for column in used if column.role in roles]

    auto, notation = overrides.encode == "auto", {c.name: c.notation for c in used}
    if overrides.missing == "impute":  # by means, which only plain numbers have
        notation = {k: v if v != "boolean" else "" for k, v in notation.items()}
    if coded:  # yes and no are 1 and 0
        notation |= dict.fromkeys(named(YES_NO), "boolean")
        found = [replace(c, kept=True, values=[], tail=0) for c in found]
    categories = [column for column in used if column.role in (CATEGORY, YES_NO)]
    missing = [column.name for column in used if column.missing]
    return Schema(
        columns=list(names),
        header=header,
        numbers=[name for name in named(NUMBER) if not notation[name]],
        categories=named(CATEGORY) if coded else named(CATEGORY, YES_NO),
        texts=named(TEXT),
        label=None if label is None else names[label],
        label_is_number=label is not None
        and not samples[label].others
        and wanted.get(label) != CATEGORY,
        weight=None if weight is None else names[weight],
        encode=overrides.encode,
        hash_size=_hash_size(overrides, used),
        missing=overrides.missing,
        values=[column.values for column in categories] if auto else [],
        tails=[column.tail for column in categories] if auto else [],
        spelt=named(YES_NO) if auto else [],
        notated=[
            name
            for name in named(NUMBER, *([YES_NO] if coded else []))
            if notation[name]
        ],
        dates=named(DATE),
        notation={name: kind for name, kind in notation.items() if kind},
        flagged=[name for name in named(NUMBER) if name in missing]
        if overrides.missing == "auto"
        else [],
        fills={c.name: c.fill for c in used if c.role in (NUMBER, DATE)}
        if overrides.missing == "auto"
        else {},
        roles=[asdict(column) for column in found],
        na=list(overrides.na),
    )


def _hash_size(overrides: Overrides, columns: Sequence[Column]) -> int:
    """Return the number of hashed features, from the number of distinct words."""
    if overrides.hash_size is not None:
        return overrides.hash_size
    words = sum(column.words for column in columns)
    if overrides.encode == "hash" or not words:
        return MOST_HASHED
    return min(max(1 << (8 * words).bit_length(), FEWEST_HASHED), MOST_HASHED)


def _wanted(names: Sequence[str], overrides: Overrides) -> dict[int, str]:
    """Return the kinds set by the user."""
    wanted: dict[int, str] = {}
    for role, some in (
        (CATEGORY, overrides.categorical),
        (TEXT, overrides.text),
        (NUMBER, overrides.numeric),
        (DATE, overrides.date),
    ):
        for one in some:
            place = find(names, one, f"{_KINDS[role]} column")
            if wanted.setdefault(place, role) != role:
                raise ValueError(
                    f"column {names[place]!r} cannot be {_KINDS[wanted[place]]} and "
                    f"{_KINDS[role]} at once"
                )
    return wanted


def locate(schema: Schema, names: Sequence[str], file: str) -> list[str]:
    """Return the names in the schema of the columns of a file.

    Without a header, names are positions. A file with one column less has no label; its
    columns are counted as if the label were there.
    """
    if not schema.header and schema.label and len(names) == len(schema.columns) - 1:
        label = schema.columns.index(schema.label)
        names = [*schema.columns[:label], *schema.columns[label + 1 :]]
    place = {name: i for i, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for i, name in enumerate(names) if place[name] > i)
        raise ValueError(
            f"{file}: duplicate column name {twice!r}: rename one of the columns"
        )
    if absent := [name for name in schema.needed() if name not in place]:
        raise ValueError(
            f"{file} has no column {_list(absent)}{_hint(absent[0], names)}, which the "
            f"model needs; it has {_list(names)}"
        )
    return list(names)


def _list(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message, at most ``most``."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def missing_value(category: bool = False) -> str:
    """Return the message for a missing value."""
    remedy = "missing=zero ignores the missing value"
    if not category:
        remedy = (
            "missing=zero replaces it by zero, and in training "
            "missing=impute by the mean of the column"
        )
    return f"the value is missing: {remedy}"
