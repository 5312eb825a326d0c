"""Hashed feature names, collected from the first rows."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.tables.encode import hash_values
from aucmax.tables.schema import Schema
from aucmax.tables.spans import Spans

_LOOKED_AT = 5000  # texts
_WORD = re.compile(r"\w\w+")  # as in encode

Listed = Callable[[], tuple[list[str], NDArray[Any]]]  # distinct cells, how often


class Word(NamedTuple):
    """A word or category that became a hashed feature."""

    feature: int
    sign: int  # what the feature is multiplied with
    name: str

    @classmethod
    def told(cls, recipe: Mapping[str, Any] | None) -> "dict[int, Word]":
        """Return what a recipe says of them, by feature; old ones say nothing."""
        words = [cls(**word) for word in (recipe or {}).get("words") or []]
        return {word.feature: word for word in words}


def words_behind(
    schema: Schema, cells: Mapping[str, Listed], wanted: Collection[int]
) -> list[Word]:
    """Return, for each hashed feature that is wanted, its most frequent word.

    ``cells`` are the first ones of the columns.
    """
    first = schema.n_features - schema.hashed
    wanted = {feature for feature in wanted if feature >= first}
    if not wanted or not schema.hashed:
        return []
    best: dict[int, tuple[int, Word]] = {}
    for column, joint, counts in _tokens(schema, cells):
        tokens = hash_values(column, _spans([*counts]), schema.hash_size, first)
        for (word, count), token in zip(counts.items(), tokens.tolist(), strict=True):
            feature, sign = token >> 1, 1 - 2 * (token & 1)
            if feature in wanted and count > best.get(feature, (0,))[0]:
                best[feature] = count, Word(feature, sign, f"{column}{joint}{word}")
    return [best[feature][1] for feature in sorted(best)]


def _tokens(
    schema: Schema, cells: Mapping[str, Listed]
) -> Iterator[tuple[str, str, Counter[str]]]:
    """Yield for each column that is hashed its words, or its values."""
    for column in schema.texts:
        counts: Counter[str] = Counter()
        values, often = cells[column]()
        for text, count in zip(values[:_LOOKED_AT], often.tolist(), strict=False):
            for word in _WORD.findall(text.lower()):
                counts[word] += count
        yield column, ": ", counts
    for column in schema.categories if schema.encode == "hash" else ():
        values, often = cells[column]()
        yield column, "=", Counter(dict(zip(values, often.tolist(), strict=True)))


def _spans(words: list[str]) -> Spans:
    letters = [word.encode(errors="replace") for word in words]
    stops = np.cumsum([len(one) for one in letters], dtype=np.int64)
    # Hashes are computed from eight bytes at a time: some must follow.
    data = np.frombuffer(bytearray(b"".join(letters) + bytes(8)), np.uint8)
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1]])
    return Spans(data, starts[: len(stops)], stops)
