"""Fingerprint of the training data, to recognise them later.

Two things tell, and cost next to nothing: some blocks of each file, and, for the same
rows in another file or out of a pipe, the first rows as features. Both are long enough
never to be alike by chance.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aucmax.core.row_hashes import Hashes, row_hashes

_SAMPLES, _SAMPLE = 8, 1 << 16  # blocks of a file and their bytes
_DIGITS = 24  # of a digest, in a model file
_MOST_FILES = 1000  # that a model file remembers
HEAD = 64  # rows that are looked at
_DISTINCT = 32  # of them must differ, or they say nothing


class Origin(NamedTuple):
    """Fingerprint of the training data."""

    files: list[str]  # digests
    rows: int = 0  # the first ones, of which there is …
    head: str = ""  # … this digest; none if they are too few or too much alike

    @classmethod
    def of(cls, digests: Iterable[str], X: Any) -> "Origin":
        """Return the fingerprint of files with these digests and first rows X."""
        files = [digest[:_DIGITS] for digest in digests if digest][:_MOST_FILES]
        hashes = row_hashes(X[:HEAD])
        if len(np.unique(hashes)) < _DISTINCT:
            return cls(files)
        return cls(files, len(hashes), _head(hashes))

    @classmethod
    def told(cls, recipe: Mapping[str, Any] | None) -> "Origin":
        """Return what a recipe says of it; old ones say nothing."""
        return cls(**((recipe or {}).get("origin") or {"files": []}))

    def among(self, heads: Mapping[str, Any]) -> list[str]:
        """Return which files are those of the origin, or have its first rows first.

        ``heads`` has the first rows of each file, ``HEAD`` or more.
        """
        return [
            file
            for file, X in heads.items()
            if self._is_known(Path(file)) or self._begins(X)
        ]

    def _is_known(self, path: Path) -> bool:
        return bool(self.files) and file_digest(path)[:_DIGITS] in self.files

    def _begins(self, X: Any) -> bool:
        if not self.head or X.shape[0] < self.rows:
            return False
        return _head(row_hashes(X[: self.rows])) == self.head


def file_digest(path: Path) -> str:
    """Return a digest of the first, the last and some other blocks of a file.

    To read all of it would take as long as to learn from it; what is sorted, edited or
    made anew differs nearly everywhere.
    """
    if not path.is_file():
        return ""
    with open(path, "rb") as file:
        last = max(path.stat().st_size - _SAMPLE, 0)
        found = sha256()
        for place in sorted({last * k // (_SAMPLES - 1) for k in range(_SAMPLES)}):
            file.seek(place)
            found.update(file.read(_SAMPLE))
    return found.hexdigest()


def _head(hashes: Hashes) -> str:
    return sha256(hashes.astype("<u8").tobytes()).hexdigest()[:_DIGITS]
