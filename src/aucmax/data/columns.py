"""Columns of a table, be it CSV or Arrow, become features.

A reader gives chunks whose X is :class:`Columns`: numbers as an array, and everything
else as :class:`Spans`, slices of a block of bytes that nobody has made an object of
yet. What is a number, what a category, what the label, is a :class:`Schema`; it is all
that is needed to turn another file into the same features, and what a model stores.

X has the numbers first, in the order of the file; then the one-hot columns; then the
hashed ones, for which the token is ``column=value``, or ``column=word`` in a column of
text, and the hash that of scikit-learn's ``FeatureHasher``: MurmurHash3 with 32 bits
and seed 0, its absolute value modulo ``hash_size`` the column, its sign the sign.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, cached_property
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import inlined, kernel
from aucmax.data.chunk import START, Chunk, Position
from aucmax.data.masks import eight_bytes
from aucmax.data.prefetch import prefetch
from aucmax.data.task import Task

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Float = NDArray[np.float64]
Missing = Literal["error", "impute", "zero"]

# What stands for "nobody knows". Not "none": data on credits mean something by it.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None")
MOST_VALUES = 1 << 22  # of all one-hot columns together: names and weights need memory


class Spans(NamedTuple):
    """Values of a column: value i is ``data[starts[i]:stops[i]]``, or missing.

    A missing value has a stop before its start.
    """

    data: Bytes
    starts: Ints
    stops: Ints


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


class TableSource:
    """What readers of tables have in common; the parameters are those of CsvSource."""

    _format: ClassVar[str]
    task: Task | None = None  # nobody but the user knows which labels are positive

    def __init__(
        self,
        files: Sequence[str],
        size: int | None,
        wishes: "Wishes",
        dtype: Any,
        keep_text: bool,
        extra: Sequence[str],
        recipe: Mapping[str, Any] | None,
        labelled: bool,
    ) -> None:
        self.files = list(files)
        self.size = size
        known = recipe["dtype"] if recipe is not None else np.float64
        self.dtype = np.dtype(known if dtype is None else dtype)
        if self.dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype is float32 or float64, not {self.dtype}")
        self._wishes = wishes
        self._keep_text = keep_text
        self._extra = list(extra)
        self._recipe = recipe
        self._labelled = labelled

    def _look(self) -> tuple[list[str], list[bool], bool]:
        """Return the names of columns, which ones are numbers, whether named at all."""
        raise NotImplementedError

    def _read(
        self, schema: Schema, start: Position, dtype: Any, fill: Float | None
    ) -> Iterator[Chunk]:
        """Read on from ``start``, chunks whose X is :class:`Columns`.

        ``fill`` is put for missing numbers, unless None.
        """
        raise NotImplementedError

    @cached_property
    def schema(self) -> Schema:
        """How columns become features; reads as much as it takes to know."""
        if self._recipe is not None:
            return self._adopted(Schema.from_json(self._recipe))
        names, number, header = self._look()
        schema = make_schema(names, number, self._wishes, header)
        if not schema.learns:
            return schema
        if self.size is None:
            raise ValueError(
                "To impute and to encode one-hot, all data are read once before the "
                "features are known, and standard input or another pipe can be read "
                "only once: give a file, or choose --missing zero and encode by hash"
            )
        imputes = schema.missing == "impute"
        fill = np.full(len(schema.numbers), np.nan if imputes else 0.0)
        refuse = schema.missing == "error"
        chunks = self._read(schema, START, np.float64, None if refuse else fill)
        return learn(schema, (chunk.X for chunk in chunks))

    def _adopted(self, schema: Schema) -> Schema:
        """Return a model's schema with the label and the weight of these data."""
        label, weight = self._wishes.label, self._wishes.weight
        if label in (None, schema.label) and weight in (None, schema.weight):
            return schema
        names, number, _ = self._look()
        if label is not None:
            place = find(names, label, "label column")
            forced = [find(names, one) for one in self._wishes.categorical]
            is_number = number[place] and place not in forced
            schema = replace(schema, label=names[place], label_is_number=is_number)
        if weight is not None:
            place = find(names, weight, "weight column")
            schema = replace(schema, weight=names[place])
        if feature := {schema.label, schema.weight} & {*schema.needed()}:
            raise ValueError(
                f"column {min(feature, key=str)!r} is a feature of the model, and "
                "cannot be its label or weight as well"
            )
        return schema

    def _locate(
        self, schema: Schema, names: Sequence[str], file: str
    ) -> dict[str, int]:
        """Return where the columns are that are read, and maybe others."""
        place = locate(schema, names, file)
        if not self._labelled:
            aside = (schema.label, schema.weight)
            place = {name: i for name, i in place.items() if name not in aside}
        return place

    @property
    def n_features(self) -> int:
        """Width of X."""
        return self.schema.n_features

    def chunks(self, start: Position = START) -> Iterator[Chunk]:
        """Read on from ``start``."""
        schema = self.schema
        fill = None if schema.missing == "error" else schema.fill
        chunks = self._read(schema, start, self.dtype, fill)
        if schema.categories or schema.texts:  # the next ones are cut while we hash
            chunks = prefetch(chunks)
        for chunk in chunks:
            yield chunk._replace(X=encode(schema, chunk.X, self.dtype))

    def recipe(self) -> dict[str, Any]:
        """Return, for JSON, how columns become features."""
        return {
            "format": self._format,
            "dtype": self.dtype.name,
            **self.schema.to_json(),
        }

    def feature_names(self) -> list[str]:
        """Return what each column of X is."""
        return self.schema.feature_names()


def remedy(category: bool) -> str:
    """Return what to do about a missing value."""
    if category:
        return "in training, --missing zero (or impute) takes the line without it"
    return (
        "in training, --missing impute puts the mean of the column there, --missing "
        "zero a zero"
    )


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


def decode(value: bytes) -> str:
    """Return text, whatever the bytes: no file fails for an accent in a category."""
    return value.decode("utf-8", "backslashreplace")


def objects(spans: Spans) -> NDArray[Any]:
    """Return the values as str objects, equal ones as one object."""
    codes, values = dictionary(spans)
    return np.array([*values, ""], dtype=object)[codes]


def dictionary(spans: Spans) -> tuple[Ints, list[str]]:
    """Return the number of each value (-1: missing) and the values, no two equal."""
    n = len(spans.starts)
    codes = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    table = np.full(1 << max(4, (2 * n).bit_length()), -1, np.int64)
    n_values = np.zeros(1, np.int64)
    _dictionary(*spans, table, codes, first, n_values)
    text = spans.data
    values = [
        decode(text[spans.starts[i] : spans.stops[i]].tobytes())
        for i in first[: n_values[0]].tolist()
    ]
    return codes, values


def encode(schema: Schema, columns: Columns, dtype: Any) -> Any:
    """Return X: dense if all features are numbers, else CSR."""
    if not schema.categories and not schema.texts:
        return columns.numbers
    n = len(columns.numbers)
    tokens = np.empty((len(schema.categories), n), np.int64)
    first = len(schema.numbers)
    for j, spans in enumerate(columns.categories):
        if schema.encode == "onehot":
            place = {value: first + i for i, value in enumerate(schema.values[j])}
            codes, values = dictionary(spans)
            known = [2 * place[value] if value in place else -1 for value in values]
            tokens[j] = np.array([*known, -1])[codes]
            first += len(place)
        else:
            prefix = _prefix(schema.categories[j])
            _hash_values(*spans, prefix, schema.hash_size, first, tokens[j])
    words = [
        _hash_words(name, spans, schema.hash_size, first)
        for name, spans in zip(schema.texts, columns.texts, strict=True)
    ]
    counts = np.count_nonzero(columns.numbers, axis=1) + np.sum(tokens >= 0, axis=0)
    for ends, _ in words:
        counts += np.diff(ends, prepend=0)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(counts, out=indptr[1:])
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], dtype)
    at = indptr[:-1].astype(np.int64)
    unique = np.empty(1, bool)
    _put_values(columns.numbers, tokens, at, indices, data, unique)
    for ends, word in words:
        _put_words(ends, word, at, indices, data)
    X = sparse.csr_array((data, indices, indptr), shape=(n, schema.n_features))
    if unique[0] and not words:  # else they are sorted by what follows
        X.has_sorted_indices = X.has_canonical_format = True
    X.sum_duplicates()
    return X


def _hash_words(name: str, spans: Spans, size: int, first: int) -> tuple[Ints, Ints]:
    """Return the tokens of all words of a column of text, and where each row ends."""
    lengths = np.maximum(spans.stops - spans.starts, 0)
    text = np.empty(int(lengths.sum()) + len(lengths), np.uint8)
    _gather(*spans, text)
    if text.size and text.max() >= 128:
        lower = text.tobytes().decode("utf-8", "replace").lower()
        text = np.frombuffer(bytearray(lower, "utf-8"), np.uint8)
        in_word = _unicode_words()
    else:
        in_word = _unicode_words()[:128]
    ends = np.empty(len(lengths), np.int64)
    tokens = np.empty(len(text) // 2 + 1, np.int64)
    _words(text, in_word, _prefix(name), size, first, ends, tokens)
    return ends, tokens


@cache
def _unicode_words() -> NDArray[np.bool_]:
    r"""Return which characters are ``\w``."""
    return np.array([chr(i).isalnum() or i == ord("_") for i in range(0x110000)])


def _prefix(name: str) -> Ints:
    """Return the state of the hash after ``name=``."""
    state = np.zeros(3, np.int64)
    token = np.frombuffer(bytearray(f"{name}=", "utf-8", "replace"), np.uint8)
    _begin(token, state)
    return state


# A token is twice the column of X, plus one if the sign is minus; -1 is none.

_MASK = 0xFFFFFFFF
_FEW = 128  # tokens of a row: it takes less to insert them than to sort the row
_NEWLINE = 10
_SPACE = 32


@inlined
def _scramble(k: int) -> int:
    k = (k * 0xCC9E2D51) & _MASK
    k = ((k << 15) & _MASK) | (k >> 17)
    return (k * 0x1B873593) & _MASK


@inlined
def _absorb(h: int, k: int) -> int:
    """Return the state of MurmurHash3 after four more bytes."""
    h ^= _scramble(k)
    h = ((h << 13) & _MASK) | (h >> 19)
    return (h * 5 + 0xE6546B64) & _MASK


@inlined
def _token(h: int, k: int, length: int, size: int, first: int) -> int:
    """Finish the hash; return the token."""
    if length & 3:
        h ^= _scramble(k)
    h ^= int(length)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    if h < 1 << 31:
        return 2 * (first + h % size)
    return 2 * (first + ((1 << 32) - h) % size) + 1


@inlined
def _hash(
    data: Bytes, start: int, stop: int, prefix: Ints, size: int, first: int
) -> int:
    """Return the token of ``data[start:stop]`` after the prefix."""
    h, k, length = int(prefix[0]), int(prefix[1]), int(prefix[2])
    shift = 8 * (length & 3)
    at = start
    while at + 8 <= min(stop + 4, data.size):  # four bytes at a time, of eight read
        k |= int(eight_bytes(data, at) & np.uint64(_MASK)) << shift
        h = _absorb(h, k & _MASK)
        k >>= 32
        at += 4
    for i in range(at, stop):
        k |= int(data[i]) << shift
        shift += 8
        if shift == 32:
            h = _absorb(h, k)
            k = 0
            shift = 0
    return _token(h, k, length + stop - start, size, first)


@kernel
def _begin(token: Bytes, state: Ints) -> None:
    for i in range(len(token)):
        state[1] |= int(token[i]) << (8 * (i & 3))
        if i & 3 == 3:
            state[0] = _absorb(int(state[0]), int(state[1]))
            state[1] = 0
    state[2] = len(token)


@kernel
def _hash_values(
    data: Bytes,
    starts: Ints,
    stops: Ints,
    prefix: Ints,
    size: int,
    first: int,
    tokens: Ints,
) -> None:
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        if stop < start:
            tokens[i] = -1
        else:
            tokens[i] = _hash(data, start, stop, prefix, size, first)


@kernel
def _gather(data: Bytes, starts: Ints, stops: Ints, text: Bytes) -> None:
    """Write one value a line, ASCII in lower case, nothing in a value ending a line."""
    at = 0
    for i in range(len(starts)):
        for j in range(starts[i], stops[i]):
            c = data[j]
            if 65 <= c <= 90:
                c |= np.uint8(32)
            elif c < _SPACE:
                c = np.uint8(_SPACE)
            text[at] = c
            at += 1
        text[at] = _NEWLINE
        at += 1


@kernel
def _words(
    text: Bytes,
    in_word: NDArray[np.bool_],
    prefix: Ints,
    size: int,
    first: int,
    ends: Ints,
    tokens: Ints,
) -> None:
    """Hash the words of two or more characters in lines of valid UTF-8."""
    n = 0
    row = 0
    start = 0  # of the word
    characters = 0  # in it
    i = 0
    while i < len(text):
        c = int(text[i])
        width = 1
        if c >= 0xF0:
            width = 4
            c &= 0x07
        elif c >= 0xE0:
            width = 3
            c &= 0x0F
        elif c >= 0xC0:
            width = 2
            c &= 0x1F
        for j in range(i + 1, i + width):
            c = (c << 6) | (int(text[j]) & 0x3F)
        if in_word[c]:
            characters += 1
        else:
            if characters > 1:
                tokens[n] = _hash(text, start, i, prefix, size, first)
                n += 1
            start = i + width
            characters = 0
            if c == _NEWLINE:
                ends[row] = n
                row += 1
        i += width


@kernel
def _put_values(
    numbers: NDArray[Any],
    tokens: Ints,
    at: Ints,
    indices: NDArray[np.int32],
    data: NDArray[Any],
    unique: NDArray[np.bool_],
) -> None:
    """Write rows of CSR from ``at`` on, move ``at``; see if all are unique.

    They are sorted, by insertion, unless there are many tokens.
    """
    few = len(tokens) <= _FEW
    unique[0] = few
    for i in range(len(numbers)):
        p = at[i]
        for j in range(numbers.shape[1]):
            if numbers[i, j] != 0.0:
                indices[p] = j
                data[p] = numbers[i, j]
                p += 1
        for j in range(len(tokens)):
            token = tokens[j, i]
            if token >= 0:
                q = p
                while few and q > at[i] and indices[q - 1] > token >> 1:
                    indices[q], data[q] = indices[q - 1], data[q - 1]
                    q -= 1
                if q > at[i] and indices[q - 1] == token >> 1:
                    unique[0] = False
                indices[q] = token >> 1
                data[q] = 1 - 2 * (token & 1)
                p += 1
        at[i] = p


@kernel
def _put_words(
    ends: Ints, tokens: Ints, at: Ints, indices: NDArray[np.int32], data: NDArray[Any]
) -> None:
    k = 0
    for i in range(len(ends)):
        p = at[i]
        while k < ends[i]:
            indices[p] = tokens[k] >> 1
            data[p] = 1 - 2 * (tokens[k] & 1)
            p += 1
            k += 1
        at[i] = p


@kernel
def _dictionary(
    data: Bytes,
    starts: Ints,
    stops: Ints,
    table: Ints,
    codes: Ints,
    first: Ints,
    n_values: Ints,
) -> None:
    """Give the values numbers, in the order in which they first come."""
    mask = len(table) - 1
    n = 0
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        if stop < start:
            codes[i] = -1
            continue
        h = int(stop - start)
        for j in range(start, stop):
            h = ((h ^ int(data[j])) * 0x01000193) & _MASK
        h ^= h >> 15  # the low bits alone know little of the first letters
        place = h & mask
        while True:
            code = table[place]
            if code < 0:
                table[place] = n
                first[n] = i
                codes[i] = n
                n += 1
                break
            other = first[code]
            if _equal(data, start, stop, starts[other], stops[other]):
                codes[i] = code
                break
            place = (place + 1) & mask
    n_values[0] = n


@inlined
def _equal(data: Bytes, start: int, stop: int, other: int, other_stop: int) -> bool:
    if stop - start != other_stop - other:
        return False
    same = True
    for j in range(stop - start):
        same &= data[start + j] == data[other + j]
    return same
