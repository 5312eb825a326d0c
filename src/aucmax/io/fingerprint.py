"""Fingerprint of the training data, to recognise them later.

It has a digest of some blocks of each file and, to recognise the same rows in another
file or a pipe, a digest of the first rows as features.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from aucmax.core.row_hashes import Hashes, row_hashes

_BLOCKS, _BLOCK_BYTES = 8, 1 << 16  # blocks of a file that are hashed, and their size
_DIGITS = 24  # of a digest in a model file
_MAX_FILES = 1000  # in a model file
HEAD = 64  # first rows that are hashed
_DISTINCT = 32  # distinct rows among them that are enough to recognise data


class Origin(NamedTuple):
    """Fingerprint of the training data."""

    files: list[str]  # digests
    rows: int = 0  # number of first rows hashed
    head: str = ""  # digest of these rows; empty if there are too few distinct ones

    @classmethod
    def of(cls, digests: Iterable[str], X: Any) -> "Origin":
        """Return the fingerprint of files with these digests and first rows X."""
        files = [digest[:_DIGITS] for digest in digests if digest][:_MAX_FILES]
        hashes = row_hashes(X[:HEAD])
        if len(np.unique(hashes)) < _DISTINCT:
            return cls(files)
        return cls(files, len(hashes), _head(hashes))

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any] | None) -> "Origin":
        """Return the fingerprint in a recipe; old recipes have none."""
        return cls(**((recipe or {}).get("origin") or {"files": []}))

    def among(self, heads: Mapping[str, Any]) -> list[str]:
        """Return the files that are training files or begin with the same rows.

        ``heads`` has the first ``HEAD`` or more rows of each file.
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
    """Return a digest of some blocks of a file, among them the first and the last.

    Reading the whole file would take as long as training. Sorted, edited or regenerated
    files differ nearly everywhere.
    """
    if not path.is_file():
        return ""
    digest = sha256()
    with open(path, "rb") as file:
        last = max(path.stat().st_size - _BLOCK_BYTES, 0)
        for start in sorted({last * k // (_BLOCKS - 1) for k in range(_BLOCKS)}):
            file.seek(start)
            digest.update(file.read(_BLOCK_BYTES))
    return digest.hexdigest()


def _head(hashes: Hashes) -> str:
    return sha256(hashes.astype("<u8").tobytes()).hexdigest()[:_DIGITS]
