"""Names of hashed features, collected from the first rows."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from aucmax.tables.hashing import hashed
from aucmax.tables.schema import Schema

_LOOKED_AT = 5000  # texts
_WORD = re.compile(r"\w\w+")  # as in hashing

Listed = Callable[[], tuple[list[str], NDArray[Any]]]  # distinct cells, how often


class Word(NamedTuple):
    """A word or category that became a hashed feature."""

    feature: int
    sign: int  # value of the feature
    name: str

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any] | None) -> "dict[int, Word]":
        """Return the words in a recipe by feature; old recipes have none."""
        words = [cls(**word) for word in (recipe or {}).get("words") or []]
        return {word.feature: word for word in words}


def words_behind(
    schema: Schema, cells: Mapping[str, Listed], wanted: Collection[int]
) -> list[Word]:
    """Return the most frequent word of each hashed feature among ``wanted``.

    ``cells`` are the cells of each column in the first rows.
    """
    first = schema.n_features - schema.hashed
    wanted = {feature for feature in wanted if feature >= first}
    if not wanted or not schema.hashed:
        return []
    best: dict[int, tuple[int, Word]] = {}
    for column, joint, counts in _tokens(schema, cells):
        features, signs = hashed(column, counts, schema.hash_size)
        places = (first + features).tolist(), signs.tolist()
        for (word, count), feature, sign in zip(counts.items(), *places, strict=True):
            if feature in wanted and count > best.get(feature, (0,))[0]:
                best[feature] = count, Word(feature, sign, f"{column}{joint}{word}")
    return [best[feature][1] for feature in sorted(best)]


def _tokens(
    schema: Schema, cells: Mapping[str, Listed]
) -> Iterator[tuple[str, str, Counter[str]]]:
    """Yield the words or values of each hashed column."""
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
