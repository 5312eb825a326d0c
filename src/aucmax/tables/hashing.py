"""Hashed features: the hashing trick of scikit-learn's ``FeatureHasher``.

The token of a category is ``column=value``, that of a text ``column=word``. Its hash is
MurmurHash3 with 32 bits and seed 0; the absolute value modulo the number of features is
the feature, the sign is the value. Only distinct values are hashed.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.utils import murmurhash3_32

from aucmax.tables.cells import Words, is_text

_WORD = re.compile(r"\w\w+")  # as scikit-learn's vectorizers


class Hashed(NamedTuple):
    """Features and signs of distinct tokens."""

    feature: NDArray[np.int64]
    sign: NDArray[np.int64]


def hashed(column: str, values: Iterable[str], size: int) -> Hashed:
    """Return features and signs of ``column=value`` for ``size`` features."""
    start = f"{column}=".encode("utf-8", "replace")
    hashes = [
        murmurhash3_32(start + value.encode("utf-8", "surrogateescape"))
        for value in values
    ]
    found = np.array(hashes, np.int64).reshape(-1)
    return Hashed(np.abs(found) % size, np.where(found < 0, -1, 1))


def bag_of_words(column: Any) -> tuple[NDArray[np.int64], Words]:
    """Return the row of each word of a text column, and the words in lower case.

    Words have two or more characters.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_text(column.type):
        column = column.cast(pa.string())
    try:
        column = column.cast(pa.large_string())
    except pa.ArrowInvalid:  # not UTF-8
        texts = [_replaced(value) for value in column.to_pylist()]
        column = pa.array(texts, pa.large_string())
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        lists = pc.split_pattern_regex(pc.ascii_lower(column), r"[^a-z0-9_]+")
    else:  # Python's tables of letters are newer than Arrow's
        distinct = column.dictionary_encode()
        texts = distinct.dictionary.to_pylist()
        found = [_WORD.findall(text.lower()) for text in texts]
        lists = pa.array(found, pa.list_(pa.large_string())).take(distinct.indices)
    rows, words = pc.list_parent_indices(lists), lists.flatten()
    long = pc.greater(pc.utf8_length(words), 1)
    encoded = words.filter(long).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    kept = rows.filter(long).to_numpy(zero_copy_only=False)
    return kept.astype(np.int64), Words(codes, encoded.dictionary.to_pylist())


def _replaced(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
