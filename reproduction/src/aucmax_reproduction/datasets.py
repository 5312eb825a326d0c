"""Named data sets: description, location, download and loading.

``datasets.csv`` has a line for each file: shape, classes, the rule that makes two
classes of many, where the rows came from, and the SHA-256 checksum of a normalised
copy, ``<name>.svm.xz`` or ``<name>.train.svm.xz`` and ``<name>.test.svm.xz``. Copies
are looked for in the folder ``$AUCMAX_DATA``, then in the user's cache. Files that are
in neither are downloaded to the cache if they have a public address.

The checksums of the public files are not known in advance. A download must have the
rows, width and class counts of the registry. Its checksum is then stored beside it, and
later downloads must match it (trust on first use).
"""

import csv
import difflib
import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.validation import DataWarning
from aucmax.io.collect import collect
from aucmax.io.svmlight import SvmlightSource
from aucmax.storage.atomic import write_atomically
from aucmax.tables.labels import Task

_RETRIES = 2
_BLOCK = 1 << 16  # bytes between progress reports

Progress = Callable[[int, int | None], None]  # bytes so far, and total if known


class Part(NamedTuple):
    """A file of a data set."""

    name: str  # of the set, or with .train or .test appended
    rows: int
    classes: Mapping[float, int]  # rows of each label
    sha256: str  # of the normalised copy
    bytes: int  # size of the normalised copy
    source: str  # where the rows came from
    url: str | None  # the same rows in svmlight format, as published
    note: str

    @property
    def file(self) -> str:
        """File name of the normalised copy."""
        return f"{self.name}.svm.xz"

    @property
    def upstream(self) -> str:
        """File name of the download."""
        packed = ".bz2" if self.url is not None and self.url.endswith(".bz2") else ""
        return f"{self.name}.upstream.svm{packed}"


class Entry(NamedTuple):
    """A data set of the registry."""

    name: str
    features: int
    task: Task  # settled
    url_labels: Mapping[float, float]  # labels in the download -> labels in the copy
    parts: Mapping[str, Part]  # "all", or "train" and "test"

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(part.rows for part in self.parts.values())

    @property
    def classes(self) -> dict[float, int]:
        """Rows of each label in all parts."""
        counts = (Counter(part.classes) for part in self.parts.values())
        return dict(sum(counts, Counter()))

    @property
    def positives(self) -> int:
        """Positive rows of all parts."""
        labels, counts = map(np.array, zip(*self.classes.items(), strict=True))
        return int(counts[self.task.sides(labels) > 0].sum())


class Data(NamedTuple):
    """A loaded data set."""

    X: Any  # csr_array
    y: NDArray[np.bool_]  # whether a row is positive
    labels: NDArray[np.float64]  # as in the file
    task: Task  # which labels are positive
    name: str


def names() -> list[str]:
    """Return the names of all data sets."""
    return sorted(_registry())


def entry(name: str) -> Entry:
    """Return the registry entry of a data set."""
    known = _registry()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(f"Unknown data set {name!r}.{hint} See datasets.csv.")
    return known[name]


def described(name: str) -> Entry:
    """Return the registry entry of a data set, or of one part such as "a9a.train"."""
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
    """Return the local path of a part, or None."""
    for folder in folders():
        for name in (part.file, part.upstream):
            if (folder / name).is_file():
                return folder / name
    return None


def fetch(name: str, progress: Progress = lambda done, total: None) -> list[Path]:
    """Download missing parts of a data set ("a9a") or one part; return all paths.

    Raises
    ------
    OSError
        If a part has no public address, cannot be downloaded, or differs from the
        first download.
    ValueError
        If a download does not match the registry.
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
    """Load a named data set; download it if it is not on this machine.

    Parameters
    ----------
    name : str
        One of ``names()``; "a9a.train" is short for the part "train" of "a9a".
    part : {"train", "test"}, default=None
        Part of a set that has them; None: all rows.
    task : Task, default=None
        Which labels are positive. None: the rule of the registry.
    dtype : type, default=numpy.float64
        Type of the features: float32 or float64.

    Returns
    -------
    Data
        ``X`` (CSR), ``y`` (bool), ``labels``, ``task``, ``name``. Train and test part
        have the same width. Rows that the task drops are left out.

    Examples
    --------
    >>> from aucmax_reproduction.datasets import load
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


def _relabel(labels: Any, url_labels: Mapping[float, float]) -> NDArray[np.float64]:
    """Replace the labels of a download by those of the registry."""
    result: NDArray[np.float64] = labels.copy()
    for published, label in url_labels.items():
        result[labels == published] = label
    return result


def _parts(name: str, part: str | None = None) -> tuple[Entry, list[Part]]:
    """Return a data set, and the named part of it or else all parts."""
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
    text = (files("aucmax_reproduction") / "datasets.csv").read_text(encoding="utf-8")
    sets: dict[str, list[dict[str, str]]] = {}
    for line in csv.DictReader(text.splitlines()):
        sets.setdefault(line["name"], []).append(line)
    return {name: _entry(lines) for name, lines in sets.items()}


def _entry(lines: Sequence[Mapping[str, str]]) -> Entry:
    """Return a data set from its lines in ``datasets.csv``, one for each part."""
    first, parts = lines[0], {}
    for line in lines:
        which = line["part"]
        parts[which] = Part(
            name=line["name"] if which == "all" else f"{line['name']}.{which}",
            rows=int(line["rows"]),
            classes=_counts(line["classes"]),
            sha256=line["sha256"],
            bytes=int(line["bytes"]),
            source=line["source"],
            url=line["url"] or None,
            note=line["note"],
        )
    labels = {label for part in parts.values() for label in part.classes}
    options = (word.partition("=") for word in first["task"].split())
    rule: dict[str, Any] = {key: value or True for key, _, value in options}
    pairs = (pair.split(":") for pair in first["url_labels"].split())
    return Entry(
        name=first["name"],
        features=int(first["features"]),
        task=Task.of(**rule).settle(sorted(labels)),
        url_labels={float(published): float(label) for published, label in pairs},
        parts=parts,
    )


def _counts(text: str) -> dict[float, int]:
    """Parse rows of each label: "-1:10 1:5", or "0..9:7" for seven of each."""
    counts = {}
    for item in text.split():
        labels, count = item.split(":")
        first, _, last = labels.partition("..")
        for label in range(int(first), int(last or first) + 1):
            counts[float(label)] = int(count)
    return counts


def _cache() -> Path:
    import pooch

    with suppress(RuntimeError):  # no home folder; an older platformdirs returns "~"
        folder = Path(pooch.os_cache("aucmax")) / "data"
        if folder.is_absolute():
            return folder
    raise FileNotFoundError(
        "Data sets are stored in the home folder, which does not exist. Set HOME or "
        "XDG_CACHE_HOME to a folder that you own."
    )


def _provide(
    known: Entry, part: Part, progress: Progress = lambda done, total: None
) -> Path:
    """Return the local path of a part, after a download if necessary."""
    path = locate(part)
    if path is not None:
        return path
    if part.url is None:
        searched = " or ".join(str(folder) for folder in folders())
        raise FileNotFoundError(
            f"{part.name} is not on this machine ({part.file} in {searched}) and has "
            f"no download address. Its rows came from {part.source}. "
            "Set AUCMAX_DATA to a folder that has the file."
        )
    path = folders()[-1] / part.upstream
    _download(part, path, progress)
    try:
        _read(known, part, path, np.float64)
    except ValueError:
        path.unlink()
        raise
    return path


def _download(part: Part, path: Path, progress: Progress) -> None:
    """Download a part; the file appears when it is complete and its checksum right."""
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel("ERROR")  # progress and warnings are reported here
    registry = pooch.create(
        path=path.parent,
        base_url="",
        registry={path.name: _expected(part, path)},
        urls={path.name: part.url},
        retry_if_failed=_RETRIES,
    )
    downloader = pooch.HTTPDownloader(
        progressbar=_Meter(progress),
        chunk_size=_BLOCK,
        headers={"Accept-Encoding": "identity"},
        hooks={"response": _refuse_downgrade},
    )
    try:
        registry.fetch(path.name, downloader=downloader)
    except RequestException as error:
        raise OSError(
            f"Cannot download {part.url}: {error}. Check the network connection, or "
            f"set AUCMAX_DATA to a folder that has {part.file}."
        ) from None
    except ValueError as error:
        raise OSError(
            f"{part.url} is not the expected file: {error} The expected checksum is "
            f"that of the first download. Delete {_lock(path)} to trust the new file."
        ) from None


def _refuse_downgrade(response: Any, **_: Any) -> None:
    """Refuse to follow a redirect from https to http."""
    target = response.headers.get("location", "") if response.is_redirect else ""
    if response.url.startswith("https:") and target.startswith("http:"):
        raise OSError(f"Refusing the redirect from {response.url} to {target}.")


class _Meter:
    """Progress bar for pooch that calls a function."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._done = progress, 0
        self.total = 0  # set by pooch; 0 if the server does not tell

    def update(self, size: int) -> None:
        """Report more bytes; pooch counts the last block as a whole."""
        self._done += size
        done = min(self._done, self.total) if self.total else self._done
        self._progress(done, self.total or None)

    def reset(self) -> None:
        """Start from zero; pooch then reports the total, if it is known."""
        self._done = 0 if self.total else self._done

    def close(self) -> None:
        """Do nothing."""


def _expected(part: Part, path: Path) -> str | None:
    """Return the known checksum of a local file, if any."""
    if path.name == part.file:
        return part.sha256
    lock = _lock(path)
    return str(json.loads(lock.read_text())["sha256"]) if lock.exists() else None


def _lock(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _verify(part: Part, path: Path) -> str | None:
    """Compare a file with its known checksum, and return that; None if unknown."""
    import pooch

    expected = _expected(part, path)
    found = None if expected is None else pooch.file_hash(str(path))
    if found != expected:
        raise ValueError(
            f"{path} is corrupted or another version: its SHA-256 is {found}, expected "
            f"{expected}. Remove the file."
        )
    return expected


def _read(
    known: Entry, part: Part, path: Path, dtype: type
) -> tuple[Any, NDArray[np.float64]]:
    """Return rows and labels of a verified file; pin the checksum of a new one."""
    import pooch

    expected = _verify(part, path)
    is_copy = path.name == part.file
    source = SvmlightSource(
        str(path), dtype=dtype, n_features=known.features if is_copy else None
    )
    X, labels, _ = collect(source)
    assert labels is not None  # svmlight files have labels
    if is_copy:
        return X, labels
    labels = _relabel(labels, known.url_labels)
    if wrong := _differences(known, part, X, labels):
        raise ValueError(
            f"{path}, from {part.url}, does not match {part.name} in the registry: "
            f"{'; '.join(wrong)}."
        )
    X.resize(len(labels), known.features)  # drops zeros beyond the last feature
    if expected is None:
        found = pooch.file_hash(str(path))
        pin = {"url": part.url, "sha256": found, "trusted": "on first use"}
        write_atomically(_lock(path), json.dumps(pin, indent=1).encode() + b"\n")
        warnings.warn(
            f"No checksum is known in advance for {part.url}. The first download is "
            f"trusted: its SHA-256, {found}, is stored in {_lock(path)}.",
            DataWarning,
            stacklevel=2,
        )
    return X, labels


def _differences(
    known: Entry, part: Part, X: Any, labels: NDArray[np.float64]
) -> list[str]:
    """Return how a download differs from the registry, at most four facts."""
    wrong = []
    if len(labels) != part.rows:
        wrong += [f"{len(labels):,} rows instead of {part.rows:,}"]
    # Published files may contain explicit zeros.
    width = int(X.indices[X.data != 0.0].max(initial=-1)) + 1
    if width > known.features:
        wrong += [f"{width:,} features instead of {known.features:,}"]
    counts = Counter(labels.tolist())
    for label in sorted({*counts, *part.classes}):
        found, right = counts[label], part.classes.get(label, 0)
        if found != right:
            wrong += [f"label {label:g} in {found:,} rows instead of {right:,}"]
    return wrong[:4]


if __name__ == "__main__":
    for one in sys.argv[1:]:
        print(*fetch(one), sep="\n")
