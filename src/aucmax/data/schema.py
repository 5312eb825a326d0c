"""Which columns of a table, be it CSV or Arrow, become which features.

What is a number, what a category, what the label, is a :class:`Schema`; it is all that
is needed to turn another file into the same features, and what a model stores.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.data.spans import Spans, dictionary

Missing = Literal["error", "impute", "zero"]

# What stands for "nobody knows". Not "none": data on credits mean something by it.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None")
MOST_VALUES = 1 << 22  # of all one-hot columns together: names and weights need memory


class Columns(NamedTuple):
    """What X is made of, sorted by what will become of it."""

    numbers: NDArray[Any]  # a column for each of Schema.numbers
    categories: list[Spans]  # one for each of Schema.categories
    texts: list[Spans]


@dataclass(frozen=True)
class Wishes:
    """What the user says about the columns, by name or position."""

    label: str | int | None = None
    weight: str | int | None = None
    drop: Sequence[str | int] = ()
    only: Sequence[str | int] | None = None
    categorical: Sequence[str | int] = ()
    text: Sequence[str | int] = ()
    encode: Literal["hash", "onehot"] = "hash"
    hash_size: int = 1 << 18
    missing: Missing = "error"

    def __post_init__(self) -> None:
        if self.encode not in ("hash", "onehot"):
            raise ValueError(f"encode is 'hash' or 'onehot', not {self.encode!r}")
        if self.missing not in ("error", "impute", "zero"):
            raise ValueError(
                f"missing is 'error', 'impute' or 'zero', not {self.missing!r}"
            )
        size = self.hash_size
        if not (isinstance(size, Integral) and 1 <= size < 1 << 31):
            raise ValueError(f"hash_size is {size!r}, not from 1 to 2147483647")


@dataclass(frozen=True)
class Schema:
    """How columns become features."""

    columns: list[str]  # all that the data had, in their order
    header: bool  # else the names of the columns are their positions
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

    @property
    def learns(self) -> bool:
        """Tell whether a pass over all data has to come first."""
        imputes = self.missing == "impute" and bool(self.numbers)
        onehot = self.encode == "onehot" and bool(self.categories)
        return (imputes and not self.means) or (onehot and not self.values)

    @property
    def n_onehot(self) -> int:
        """Return the number of one-hot columns."""
        return sum(map(len, self.values))

    @property
    def hashed(self) -> int:
        """Return the number of hashed columns of X."""
        any_hashed = self.texts or (self.categories and self.encode == "hash")
        return self.hash_size if any_hashed else 0

    @property
    def n_features(self) -> int:
        """Return the number of columns of X."""
        return len(self.numbers) + self.n_onehot + self.hashed

    @property
    def fill(self) -> NDArray[np.float64]:
        """Return what to put for a missing number."""
        return np.array(self.means or [0.0] * len(self.numbers))

    def needed(self) -> list[str]:
        """Return the names of the columns without which there are no features."""
        return [*self.numbers, *self.categories, *self.texts]

    def feature_names(self) -> list[str]:
        """Return what each column of X is."""
        onehot = [
            f"{column}={value}"
            for column, values in zip(self.categories, self.values, strict=False)
            for value in values
        ]
        return [*self.numbers, *onehot, *(f"hash_{i}" for i in range(self.hashed))]

    def to_json(self) -> dict[str, Any]:
        """Return everything as values that JSON knows."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, recipe: Mapping[str, Any]) -> "Schema":
        """Return the schema that ``to_json`` has written."""
        missing = cls.__dataclass_fields__.keys() - recipe.keys()
        if missing:
            raise ValueError(f"the recipe does not say {', '.join(sorted(missing))}")
        return cls(**{name: recipe[name] for name in cls.__dataclass_fields__})


def find(names: Sequence[str], wanted: str | int, what: str = "column") -> int:
    """Return the position of the column that is called ``wanted``, or stands there."""
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    try:
        position = int(wanted)
    except ValueError:
        near = get_close_matches(str(wanted), names, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(
            f"no {what} {wanted!r}{hint}; there are {_list(names)}"
        ) from None
    if not -len(names) <= position < len(names):
        raise ValueError(
            f"no {what} {wanted!r}: there are {len(names)} columns, {_list(names)}"
        )
    return position % len(names)


def make_schema(
    names: Sequence[str], number: Sequence[bool], wishes: Wishes, header: bool = True
) -> Schema:
    """Decide what each column is: ``number`` says which ones could be numbers."""

    def positions(wanted: Iterable[str | int], what: str) -> set[int]:
        return {find(names, one, what) for one in wanted}

    label = None if wishes.label is None else find(names, wishes.label, "label column")
    weight = (
        None if wishes.weight is None else find(names, wishes.weight, "weight column")
    )
    if label is not None and label == weight:
        raise ValueError(f"column {names[label]!r} cannot be label and weight at once")
    forced = positions(wishes.categorical, "categorical column")
    texts = positions(wishes.text, "text column")
    dropped = positions(wishes.drop, "column to drop")
    if wishes.only is not None:
        only = positions(wishes.only, "column")
        dropped |= set(range(len(names))) - only
        if label in only or weight in only:
            raise ValueError("the label or the weight is among the columns to use only")
    if both := (forced & texts):
        name = names[min(both)]
        raise ValueError(f"column {name!r} cannot be categorical and text at once")
    features = set(range(len(names))) - dropped - {label, weight}
    if not features:
        raise ValueError("no column is left to make features of")
    numbers = {i for i in features - forced - texts if number[i]}

    def named(chosen: set[int]) -> list[str]:
        return [names[i] for i in sorted(chosen)]

    return Schema(
        columns=list(names),
        header=header,
        numbers=named(numbers),
        categories=named(features - numbers - texts),
        texts=named(features & texts),
        label=None if label is None else names[label],
        label_is_number=label is not None and number[label] and label not in forced,
        weight=None if weight is None else names[weight],
        encode=wishes.encode,
        hash_size=wishes.hash_size,
        missing=wishes.missing,
    )


def locate(schema: Schema, names: Sequence[str], file: str) -> dict[str, int]:
    """Return where the columns of ``schema`` are in a file that has these ``names``.

    Without a header the names are positions; a file that has one column less is one
    without the label, and its columns are counted as if the label were there.
    """
    if not schema.header and schema.label and len(names) == len(schema.columns) - 1:
        label = schema.columns.index(schema.label)
        names = [*schema.columns[:label], *schema.columns[label + 1 :]]
    place = {name: i for i, name in enumerate(names)}
    if len(place) < len(names):
        twice = next(name for i, name in enumerate(names) if place[name] > i)
        raise ValueError(f"{file}: two columns are called {twice!r}: rename one")
    if absent := [name for name in schema.needed() if name not in place]:
        raise ValueError(
            f"{file} has no column {_list(absent)}, which the features are made of; "
            f"it has {_list(names)}"
        )
    return place


def _list(names: Sequence[str], most: int = 12) -> str:
    """Return names to read, not too many of them."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def learn(schema: Schema, parts: Iterable[Columns]) -> Schema:
    """Return the schema with what a pass over all data tells: means and values.

    A missing number is a NaN if its mean is wanted.
    """
    imputes = schema.missing == "impute"
    onehot = schema.encode == "onehot"
    count = np.zeros(len(schema.numbers))
    mean = np.zeros(len(schema.numbers))
    values: list[set[str]] = [set() for _ in schema.categories] if onehot else []
    for columns in parts:
        if imputes:
            known = ~np.isnan(columns.numbers)
            n = known.sum(axis=0)
            count += n
            # Of numbers near the largest ones the mean exists though the sum does not.
            part = np.where(known, columns.numbers - mean, 0.0) / np.maximum(count, 1.0)
            mean += part.sum(axis=0)
        for seen, spans in zip(values, columns.categories, strict=False):
            seen.update(dictionary(spans)[1])
        if sum(map(len, values)) > MOST_VALUES:
            raise ValueError(
                f"one-hot encoding would make more than {MOST_VALUES} features: "
                "drop the columns with the most values, or encode by hash"
            )
    return replace(
        schema,
        means=mean.tolist() if imputes else [],
        values=[sorted(seen) for seen in values],
    )


def remedy(category: bool) -> str:
    """Return what to do about a missing value."""
    if category:
        return "in training, --missing zero (or impute) takes the line without it"
    return (
        "in training, --missing impute puts the mean of the column there, --missing "
        "zero a zero"
    )
