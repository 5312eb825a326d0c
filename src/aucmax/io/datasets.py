"""Registry of named data sets: description, location, download and loading.

``datasets.json`` lists them: shape, classes, the rule that makes two classes of many,
where the rows came from, and the checksum of a normalised copy, ``<name>.svm.xz`` or
``<name>.train.svm.xz`` and ``<name>.test.svm.xz``. Copies are looked for in the folder
``$AUCMAX_DATA``, then in the user's cache. Failing that, a set with a public address is
downloaded to the cache.

The checksum of what is at such an address is not known beforehand. A download is read
first: rows, width and the count of each class have to be those of the registry. Then
its checksum is written beside it, and holds from then on: trust on first use.
"""

import difflib
import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.io.chunk import Chunk
from aucmax.io.collect import collect
from aucmax.io.download import ChecksumError, Progress, checksum, download
from aucmax.io.svmlight import SvmlightSource
from aucmax.io.text import Block
from aucmax.storage.atomic import write_atomically
from aucmax.tables.labels import Task


class Part(NamedTuple):
    """A file of a data set."""

    name: str  # of the set, or that with .train or .test
    rows: int
    classes: Mapping[float, int]  # rows of each label
    sha256: str  # of the normalised copy
    bytes: int  # its size
    source: str  # where the rows came from
    url: str | None  # the same rows in svmlight format, as their publisher has them
    note: str

    @property
    def file(self) -> str:
        """The name of the normalised copy."""
        return f"{self.name}.svm.xz"

    @property
    def upstream(self) -> str:
        """The name of what is downloaded."""
        packed = ".bz2" if self.url is not None and self.url.endswith(".bz2") else ""
        return f"{self.name}.upstream.svm{packed}"


class Entry(NamedTuple):
    """A set of the registry."""

    name: str
    features: int
    task: Task  # settled
    url_labels: Mapping[float, float]  # labels at the address -> labels here
    parts: Mapping[str, Part]  # "all", or "train" and "test"

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(part.rows for part in self.parts.values())

    @property
    def classes(self) -> dict[float, int]:
        """Rows of each label in all parts."""
        total: dict[float, int] = {}
        for part in self.parts.values():
            for label, count in part.classes.items():
                total[label] = total.get(label, 0) + count
        return total

    @property
    def positives(self) -> int:
        """Positive rows of all parts."""
        labels, counts = map(np.array, zip(*self.classes.items(), strict=True))
        return int(counts[self.task.sides(labels) > 0].sum())


class Data(NamedTuple):
    """A set that has been loaded."""

    X: Any  # csr_array, as wide as the registry says
    y: NDArray[np.bool_]  # positive or not
    labels: NDArray[np.float64]  # as in the file
    task: Task  # which labels are positive
    name: str


def names() -> list[str]:
    """Return the names of all sets."""
    return sorted(_registry())


def entry(name: str) -> Entry:
    """Return the registry entry of a set."""
    known = _registry()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"Unknown data set {name!r}.{hint} See aucmax datasets.")
    return known[name]


def described(name: str) -> Entry:
    """Return what is known of a set, or of one part of it, as "a9a.train"."""
    known, parts = _parts(name)
    if len(parts) == len(known.parts):
        return known
    chosen = {which: part for which, part in known.parts.items() if part in parts}
    return known._replace(name=name, parts=chosen)


def folders() -> list[Path]:
    """Return the folders that are searched; downloads go to the last one."""
    given = os.environ.get("AUCMAX_DATA")
    return ([Path(given).expanduser()] if given else []) + [_cache()]


def locate(part: Part) -> Path | None:
    """Return the path of a part on this machine, or None."""
    for folder in folders():
        for name in (part.file, part.upstream):
            if (folder / name).is_file():
                return folder / name
    return None


def fetch(name: str, progress: Progress = lambda done, total: None) -> list[Path]:
    """Download the parts of a set that are not on this machine; return where they are.

    "a9a.train" is one part of "a9a".

    Raises
    ------
    FileNotFoundError
        If a part is not here and has no public address.
    OSError
        If it cannot be downloaded.
    ValueError
        If what was downloaded is not the set that the registry describes.
    """
    known, parts = _parts(name)
    return [_provide(known, part, progress) for part in parts]


def load(
    name: str,
    part: str | None = None,
    task: Task | None = None,
    *,
    dtype: type = np.float64,
) -> Data:
    """Load a named data set, from this machine or from its public address.

    Parameters
    ----------
    name : str
        One of ``names()``; "a9a.train" is short for the part "train" of "a9a".
    part : {"train", "test"}, default=None
        Which part of a set that has them; None: all rows.
    task : Task, default=None
        Which labels are positive. None: the rule of the registry.
    dtype : type, default=numpy.float64
        Of the features: float32 or float64.

    Returns
    -------
    Data
        ``X`` (CSR), ``y`` (bool), ``labels``, ``task``, ``name``. Train and test part
        have the same width. Rows that the task drops are not there.

    Examples
    --------
    >>> from aucmax.data import load
    >>> X, y, *_ = load("a9a", "train")  # doctest: +SKIP
    """
    known, parts = _parts(name, part)
    rows = [_read(known, one, _provide(known, one), dtype) for one in parts]
    X = sparse.vstack([X for X, _ in rows], format="csr")
    labels = np.concatenate([labels for _, labels in rows])
    task = known.task if task is None else task.settle(list(known.classes))
    side = task.sides(labels)
    if not side.all():
        kept = side != 0
        X, labels, side = X[kept], labels[kept], side[kept]
    return Data(X, side > 0, labels, task, name if part is None else f"{name}.{part}")


def is_name(text: str) -> bool:
    """Return whether this names a set, or one part of a set that has two."""
    stem, _, part = text.rpartition(".")
    return text in _registry() or (stem in _registry() and part in ("train", "test"))


class SetSource(SvmlightSource):
    """The rows of a set or of a part, in chunks; they are fetched if not here.

    Parameters
    ----------
    name : str
        One of ``names()``; "a9a.train" is the part "train" of "a9a".
    dtype, keep_text
        See :class:`~aucmax.io.svmlight.SvmlightSource`.

    Attributes
    ----------
    task : Task
        Which labels are positive, by the rule of the registry.
    """

    def __init__(
        self, name: str, *, dtype: Any = np.float64, keep_text: bool = False
    ) -> None:
        known, parts = _parts(name)
        paths = [_provide(known, part) for part in parts]
        self._there: dict[str, Mapping[float, float]] = {}
        for part, path in zip(parts, paths, strict=True):
            expected = _expected(part, path)
            if expected is None:  # read it once: that is how it is known to be right
                _read(known, part, path, np.float64)
            else:
                _expect(path, checksum(path), expected)
            if path.name != part.file:
                self._there[str(path)] = known.url_labels
        super().__init__(
            [str(path) for path in paths],
            dtype=dtype,
            n_features=known.features,
            keep_text=keep_text,
        )
        self.task = known.task

    def _chunk(self, block: Block, width: int) -> Chunk:
        chunk = super()._chunk(block, width)
        return chunk._replace(y=_here(chunk.y, self._there.get(block.file, {})))


def _here(labels: Any, url_labels: Mapping[float, float]) -> NDArray[np.float64]:
    """Return the labels that the registry gives, for those at the public address."""
    found: NDArray[np.float64] = labels.copy()
    for there, here in url_labels.items():
        found[labels == there] = here
    return found


def _parts(name: str, part: str | None = None) -> tuple[Entry, list[Part]]:
    """Return a set, and of its parts the one that is named; all if none is."""
    stem, dot, ending = name.rpartition(".")
    if dot and part is None and stem in _registry():
        name, part = stem, ending
    known = entry(name)
    if part is None:
        return known, list(known.parts.values())
    if part not in known.parts:
        raise ValueError(
            f"{name} has no part {part!r}. Parts: {', '.join(known.parts)}."
        )
    return known, [known.parts[part]]


@cache
def _registry() -> Mapping[str, Entry]:
    text = (files("aucmax.io") / "datasets.json").read_text(encoding="utf-8")
    return {name: _entry(name, facts) for name, facts in json.loads(text).items()}


def _entry(name: str, facts: Mapping[str, Any]) -> Entry:
    parts = {}
    for which, part in facts["parts"].items():
        stem = name if which == "all" else f"{name}.{which}"
        parts[which] = Part(
            name=stem,
            rows=part["rows"],
            classes=_counts(part["classes"]),
            sha256=part["sha256"],
            bytes=part["bytes"],
            source=part["source"],
            url=part.get("url"),
            note=part.get("note", ""),
        )
    labels = {label for part in parts.values() for label in part.classes}
    task = Task.of(**facts["task"]).settle(sorted(labels))
    pairs = (pair.split(":") for pair in facts.get("url_labels", "").split())
    url_labels = {float(there): float(here) for there, here in pairs}
    return Entry(name, facts["features"], task, url_labels, parts)


def _counts(text: str) -> dict[float, int]:
    """Return the rows of each label: "-1:10 1:5", or "0..9:7" for seven of each."""
    counts = {}
    for item in text.split():
        labels, count = item.split(":")
        first, _, last = labels.partition("..")
        for label in range(int(first), int(last or first) + 1):
            counts[float(label)] = int(count)
    return counts


def _cache() -> Path:
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        raise FileNotFoundError(
            "Data sets are stored in the home folder, which does not exist. Set HOME "
            "or XDG_CACHE_HOME to a folder that you own."
        ) from None
    return Path(base) / "aucmax" / "data"


def _provide(
    known: Entry, part: Part, progress: Progress = lambda done, total: None
) -> Path:
    """Return where a part is, after a download if need be."""
    path = locate(part)
    if path is not None:
        return path
    searched = " or ".join(str(folder) for folder in folders())
    if part.url is None:
        raise FileNotFoundError(
            f"{part.name} is not on this machine ({part.file} in {searched}) and has "
            f"no download address. Its rows came from {part.source}. "
            "Set AUCMAX_DATA to a folder that has the file."
        )
    path = folders()[-1] / part.upstream
    lock = _lock(path)
    try:
        download(part.url, path, sha256=_expected(part, path), progress=progress)
    except ChecksumError as error:
        raise ChecksumError(
            f"{error} That is the checksum of the first download. Delete {lock} to "
            "trust the present file."
        ) from None
    try:
        _read(known, part, path, np.float64)
    except ValueError:
        path.unlink()
        raise
    return path


def _expected(part: Part, path: Path) -> str | None:
    """Return the checksum that a part has to have there, if it is known."""
    if path.name == part.file:
        return part.sha256
    lock = _lock(path)
    return str(json.loads(lock.read_text())["sha256"]) if lock.exists() else None


def _lock(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _read(
    known: Entry, part: Part, path: Path, dtype: type
) -> tuple[Any, NDArray[np.float64]]:
    """Return rows and labels of a file that is what it should be."""
    found, expected = checksum(path), _expected(part, path)
    if expected is not None:
        _expect(path, found, expected)
    if path.name == part.file:
        return _parse(path, dtype, known.features)
    X, y = _parse(path, dtype, None)
    labels = _here(y, known.url_labels)
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    # A publisher may have written zeros down.
    width = int(X.indices[X.data != 0.0].max(initial=-1)) + 1
    if wrong := _differences(known, part, (X.shape[0], width), counts):
        raise ValueError(
            f"{path}, from {part.url}, does not match {part.name} in the registry: "
            f"{'; '.join(wrong)}."
        )
    if X.shape[1] > known.features:
        X = X[:, : known.features]
    X = sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], known.features))
    if expected is None:
        pin = {"url": part.url, "sha256": found, "trusted": "on first use"}
        write_atomically(_lock(path), json.dumps(pin, indent=1).encode() + b"\n")
    return X, labels


def _differences(
    known: Entry, part: Part, shape: tuple[int, int], counts: Mapping[float, int]
) -> list[str]:
    wrong = []
    if shape[0] != part.rows:
        wrong += [f"{shape[0]:,} rows instead of {part.rows:,}"]
    if shape[1] > known.features:
        wrong += [f"{shape[1]:,} features instead of {known.features:,}"]
    for label in sorted({*counts, *part.classes}):
        found, right = counts.get(label, 0), part.classes.get(label, 0)
        if found != right:
            wrong += [f"label {label:g} in {found:,} rows instead of {right:,}"]
    return wrong[:4]


def _expect(path: Path, found: str, expected: str) -> None:
    if found != expected:
        raise ValueError(
            f"{path} is corrupted or another version: its SHA-256 is {found}, expected "
            f"{expected}. Remove the file."
        )


def _parse(path: Path, dtype: type, n_features: int | None) -> tuple[Any, NDArray[Any]]:
    source = SvmlightSource([str(path)], dtype=dtype, n_features=n_features)
    X, y, _ = collect(source)
    assert y is not None  # lines of svmlight begin with a label
    return X, y
