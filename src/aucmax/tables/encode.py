"""Encoding of columns as features: numbers, one-hot and hashed columns.

X has the numbers first, in the order of the file; then the one-hot columns; then the
hashed ones, for which the token is ``column=value``, or ``column=word`` in a column of
text, and the hash that of scikit-learn's ``FeatureHasher``: MurmurHash3 with 32 bits
and seed 0, its absolute value modulo ``hash_size`` the column, its sign the sign.
"""

from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.jit import inlined, kernel
from aucmax.tables.column_kinds import MISSING_VALUE, NO, YES
from aucmax.tables.masks import eight_bytes
from aucmax.tables.schema import Columns, Schema
from aucmax.tables.spans import Bytes, Float, Ints, Spans, dictionary


def encode(
    schema: Schema, columns: Columns, dtype: Any, unknown: Counter[str] | None = None
) -> Any:
    """Return X: dense if all features are numbers, else CSR.

    ``unknown`` counts the values of categories that have no feature of their own.
    """
    numbers = _all_numbers(schema, columns, dtype)
    if not schema.categories and not schema.texts:
        return numbers
    n = len(numbers)
    tokens = np.empty((len(schema.categories), n), np.int64)
    first = schema.n_numbers
    for j, spans in enumerate(columns.categories):
        if schema.encode == "hash":
            name = schema.categories[j]
            tokens[j] = hash_values(name, spans, schema.hash_size, first)
            continue
        tail = schema.tails[j] if schema.tails else 0
        tokens[j] = _own_columns(schema, j, spans, first, tail, unknown)
        first += len(schema.values[j]) + tail
    words = [
        _hash_words(name, spans, schema.hash_size, first)
        for name, spans in zip(schema.texts, columns.texts, strict=True)
    ]
    counts = np.count_nonzero(numbers, axis=1) + np.sum(tokens >= 0, axis=0)
    for ends, _ in words:
        counts += np.diff(ends, prepend=0)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(counts, out=indptr[1:])
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty(indptr[-1], dtype)
    at = indptr[:-1].astype(np.int64)
    unique = np.empty(1, bool)
    _put_values(numbers, tokens, at, indices, data, unique)
    for ends, word in words:
        _put_words(ends, word, at, indices, data)
    X = sparse.csr_array((data, indices, indptr), shape=(n, schema.n_features))
    if unique[0] and not words:  # else they are sorted by what follows
        X.has_sorted_indices = X.has_canonical_format = True
    X.sum_duplicates()
    return X


def _all_numbers(schema: Schema, columns: Columns, dtype: Any) -> NDArray[Any]:
    """Return the columns of X that are numbers; what is missing is filled in."""
    plain = columns.numbers
    fills = np.array([schema.fills.get(name, 0.0) for name in schema.numbers])
    gaps = np.isnan(plain) if schema.missing == "auto" else None
    if gaps is not None and gaps.any():
        plain = np.where(gaps, fills.astype(plain.dtype), plain)
    if schema.n_numbers == len(schema.numbers):
        return plain
    parts, missing = [plain], dict(zip(schema.numbers, _columns(gaps), strict=False))
    for name, values in zip(
        [*schema.notated, *schema.dates], columns.others, strict=True
    ):
        missing[name] = np.isnan(values)
        filled = np.where(missing[name], schema.fills.get(name, 0.0), values)
        dated = name in schema.dates
        parts.append(_date(filled, missing[name]) if dated else filled[:, np.newaxis])
    parts += [missing[name][:, np.newaxis] for name in schema.flagged]
    return np.hstack([part.astype(dtype, copy=False) for part in parts])


def _columns(table: NDArray[np.bool_] | None) -> list[NDArray[np.bool_]]:
    return [] if table is None else list(table.T)


def _date(seconds: Float, missing: NDArray[np.bool_]) -> Float:
    """Return days since 1970, a column for each day of the week, and the hour."""
    days = seconds / _DAY
    weekday = (np.floor(days).astype(np.int64) + _THURSDAY) % 7
    week = (weekday[:, np.newaxis] == np.arange(7)) & ~missing[:, np.newaxis]
    hour = np.where(missing, 0.0, (seconds % _DAY) / 3600.0)
    return np.column_stack([days, week, hour])


def _own_columns(
    schema: Schema,
    j: int,
    spans: Spans,
    first: int,
    tail: int,
    unknown: Counter[str] | None,
) -> Ints:
    """Return the tokens of a category: its own columns, then those of other values."""
    name, known = schema.categories[j], schema.values[j]
    place = {value: first + i for i, value in enumerate(known)}
    if name in schema.spelt:
        place |= dict.fromkeys(YES, first) | dict.fromkeys(NO, -1)
    codes, values = dictionary(spans)
    if name in schema.spelt:
        values = [value.strip().lower() for value in values]
    found = np.array([place.get(value, _UNKNOWN) for value in values], np.int64)
    tokens = np.where(found >= 0, 2 * found, found)
    none = 2 * place[MISSING_VALUE] if MISSING_VALUE in place else -1
    row = np.append(tokens, none)[codes]
    new = row == _UNKNOWN
    if new.any():
        if unknown is not None and tail <= 1:
            unknown[name] += int(np.count_nonzero(new))
        if tail > 1:
            row = np.where(new, hash_values(name, spans, tail, first + len(known)), row)
        else:
            row[new] = 2 * (first + len(known)) if tail else -1
    return row


def hash_values(name: str, spans: Spans, size: int, first: int) -> Ints:
    """Return the tokens of ``name=value``, for the ``size`` columns from ``first``."""
    tokens = np.empty(len(spans.starts), np.int64)
    _hash_values(*spans, _prefix(name), size, first, tokens)
    return tokens


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

_UNKNOWN = -2  # a value that has no column
_DAY = 86_400.0  # seconds
_THURSDAY = 3  # the first of January 1970, Monday being 0
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
