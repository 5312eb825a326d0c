"""Which data a model was trained on, so that it knows them again.

Two things tell, and cost next to nothing: some blocks of each file, and, for the same
rows in another file or out of a pipe, the first rows as features. Both are long enough
never to be alike by chance.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_SAMPLES, _SAMPLE = 8, 1 << 16  # blocks of a file and their bytes
_DIGITS = 24  # of a digest, in a model file
_MOST_FILES = 1000  # that a model file remembers
HEAD = 64  # rows that are looked at
_DISTINCT = 32  # of them must differ, or they say nothing

Hashes = NDArray[np.uint64]


class Origin(NamedTuple):
    """What tells data again."""

    files: list[str]  # digests
    rows: int = 0  # the first ones, of which there is …
    head: str = ""  # … this digest; none if they are too few or too much alike

    @classmethod
    def of(cls, digests: Iterable[str], X: Any) -> "Origin":
        """Return what tells files with these digests, or rows that begin like X."""
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
    """Return a digest of some blocks of a file: the first, the last, some between.

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


def row_hashes(X: Any, seed: int = 0) -> Hashes:
    """Return a number for each row: equal ones for equal rows, dense or CSR."""
    rows = sparse.csr_array(X)
    value = np.ascontiguousarray(rows.data, np.float64).view(np.uint64)
    mixed = _mix(value ^ _mix(rows.indices.astype(np.uint64) + np.uint64(seed + 1)))
    mixed[rows.data == 0.0] = 0
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return _mix(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])


def _head(hashes: Hashes) -> str:
    return sha256(hashes.astype("<u8").tobytes()).hexdigest()[:_DIGITS]


def _mix(x: Hashes) -> Hashes:
    """Return the output of the generator SplitMix64 (Steele, Lea, Flood 2014) at x."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
