"""The svmlight (LIBSVM) format: ``label index:value index:value … # comment``.

A kernel reads a block of text without the interpreter's lock, so beside training. It
knows good lines only: what is wrong with another one, slow and plain code finds out.
"""

import os
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.validation import DataWarning
from aucmax.io.chunk import START, BadLine, Chunk, Lines, Position
from aucmax.io.masks import (
    count,
    mask_size,
)
from aucmax.io.svmlight_scan import ASKED, COLON, LABEL, NINE, WIDTH, read_block
from aucmax.io.text import Block, Text
from aucmax.tables.labels import Task
from aucmax.tables.options import option

_MOST_FEATURES = 2**31 - 1  # column numbers are 32 bits wide
# More than any known data set has; what a learner keeps of so many takes 10 GB.
MAX_FEATURES = 2**27

_NUMBER = re.compile(
    rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_INTEGER = re.compile(rb"[+-]?\d{1,18}")  # as many digits as always fit into 64 bits
_QUERY = re.compile(rb"^(?:[^#\n]*\s)?qid:", re.MULTILINE)
_FEW = 1 << 14  # bytes: who has queries has them in all lines
_PUZZLE = "malformed svmlight line"


class SvmlightSource:
    """Rows of svmlight files.

    Lines may have comments (``#``), ``qid:n`` and indices in any order; blank ones are
    passed over. A line is bad if its label or a value is not a finite number (of this
    float type), or if an index is not an integer, out of range or there twice.

    Parameters
    ----------
    paths : str, sequence of str or Text
        See :class:`aucmax.io.text.Text`.
    dtype : type, default=np.float64
        Of the values; ``np.float32`` rounds them once more.
    zero_based : bool, default=False
        Whether the first feature has the index 0, not 1.
    n_features : int, default=None
        How many features there are; further ones are left out. None: as many as the
        widest row has that was read so far.
    max_features : int, default=2**27
        How many features there can be, if ``n_features`` does not say: a line with an
        index beyond is bad. One wrong index would have learners ask for all the memory.
    missing : {"error", "zero"}, default="error"
        What becomes of the values nan and inf: they make the line bad, or are zero.
    keep_text : bool, default=False
        Whether each chunk has the text of its rows, too.
    labelled : bool, default=True
        Whether labels are read; if not, ``Chunk.y`` is None, and lines may begin with
        an entry.
    prompt : bool, default=False
        See :meth:`aucmax.io.text.Text.blocks`.

    Attributes
    ----------
    files : list of str
        What will be read, in this order.
    size : int or None
        Bytes of all files together, as they are on disk; None if nobody knows.
    """

    task: Task | None = None  # nobody but the user knows which labels are positive

    options: ClassVar[frozenset[str]] = frozenset(
        [
            "dtype",
            "zero_based",
            "n_features",
            "max_features",
            "missing",
            "keep_text",
            "labelled",
            "prompt",
        ]
    )

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str] | Text,
        *,
        dtype: Any = np.float64,
        zero_based: bool = False,
        n_features: int | None = None,
        max_features: int = MAX_FEATURES,
        missing: Literal["error", "zero"] = "error",
        keep_text: bool = False,
        labelled: bool = True,
        prompt: bool = False,
    ) -> None:
        self._dtype = np.dtype(dtype)
        if self._dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, not {self._dtype}")
        if missing not in ("error", "zero"):
            raise ValueError(f"missing must be 'error' or 'zero', not {missing!r}")
        for name, number in (
            ("n_features", n_features),
            ("max_features", max_features),
        ):
            if number is not None and not _is_count(number):
                raise ValueError(
                    f"{name} must be from 1 to {_MOST_FEATURES}, not {number!r}"
                )
        self._text = paths if isinstance(paths, Text) else Text(paths)
        self._prompt = prompt
        self.files, self.size = self._text.files, self._text.size
        self._base = 0 if zero_based else 1
        self._n_features, self._max_features = n_features, max_features
        self._missing = missing
        self._keep_text = keep_text
        self._labelled = labelled
        self._cut = self._wider = 0

    @property
    def n_features(self) -> int | None:
        """Number of columns of ``Chunk.X``; None: that of the widest row so far."""
        return self._n_features

    def recipe(self) -> dict[str, Any]:
        """Return the reader options as JSON, enough to read other files."""
        return {
            "format": "svmlight",
            "zero_based": self._base == 0,
            "missing": self._missing,
            "max_features": self._max_features,
            "dtype": self._dtype.name,
        }

    def words(self, features: Collection[int]) -> list[Any]:
        """Return an empty list: features have numbers only."""
        return []

    def feature_names(self) -> list[str] | None:
        """Return None: features have numbers only."""
        return None

    def chunks(self, start: Position = START) -> Iterator[Chunk]:
        """Read on from ``start``."""
        width, self._cut, self._wider = self._n_features or 0, 0, 0
        for block in self._text.blocks(start, self._prompt):
            self._note_queries(block)
            chunk = self._chunk(block, width)
            width = chunk.X.shape[1]
            if chunk.X.shape[0] or chunk.bad:
                yield chunk
        if self._cut:
            self._note_cut()

    def _note_cut(self) -> None:
        """Warn about ignored features."""
        rows = "1 row has" if self._cut == 1 else f"{self._cut:,} rows have"
        warnings.warn(
            f"{', '.join(self.files)}: {rows} features beyond the {self._n_features:,} "
            f"of the model, up to number {self._wider - 1 + self._base:,}: "
            "these features are ignored.",
            DataWarning,
            stacklevel=2,
        )

    def _note_queries(self, block: Block) -> None:
        """Warn if the first lines have query numbers, which are ignored."""
        if block.start.line == 0 and _QUERY.search(block.data[:_FEW].tobytes()):
            warnings.warn(
                f"{self.files[0]}: qid is ignored: all rows are ranked together, "
                "not per query.",
                DataWarning,
                stacklevel=2,
            )

    def _chunk(self, block: Block, width: int) -> Chunk:
        data = block.data
        n_lines = block.after.line - block.start.line
        most = count(data, COLON)
        masks = np.empty((2, mask_size(data.size)), np.uint8)
        y = np.empty(n_lines)
        indptr = np.zeros(n_lines + 1, np.int32)
        indices = np.empty(most, np.int32)
        values = np.empty(most, self._dtype)
        lines, bad = np.empty((n_lines, 3), np.int32), np.empty((n_lines, 3), np.int32)
        asked = np.empty((16, 4), np.int64)
        found = np.zeros(8, np.int64)
        while True:
            found[WIDTH] = width
            read_block(
                data,
                self._base,
                self._max_features if self._n_features is None else self._n_features,
                self._n_features is not None,
                self._missing == "zero",
                self._labelled,
                y,
                indptr,
                indices,
                values,
                lines,
                bad,
                asked,
                found,
                masks[0],
                masks[1],
            )
            if found[ASKED] <= len(asked):
                break
            asked = np.empty((found[ASKED], 4), np.int64)
        n, nnz, n_bad, n_asked, wide, unsorted, cut, wider = found.tolist()
        self._cut, self._wider = self._cut + cut, max(self._wider, wider)
        y, lines, bad = y[:n], lines[:n], bad[:n_bad]
        wrong = _ask_python(data, asked[:n_asked], y, values)
        parts = values[:nnz], indices[:nnz], indptr[: n + 1]
        X = sparse.csr_array(parts, shape=(n, wide))
        if unsorted:
            wrong += _sort(X)
        if wrong:
            good = np.ones(n, bool)
            good[wrong] = False
            bad = np.concatenate([bad, lines[~good]])
            bad = bad[np.argsort(bad[:, 0])]
            X, y, lines = X[good], y[good], lines[good]
            width = max(width, int(X.indices.max(initial=-1)) + 1)
            X = sparse.csr_array((X.data, X.indices, X.indptr), (len(y), width))
        X.has_sorted_indices = X.has_canonical_format = True
        return Chunk(
            X=X,
            y=y if self._labelled else None,
            weight=None,
            bad=[self._bad_line(block, *line) for line in bad.tolist()],
            raw=Lines(data.tobytes(), *lines[:, 1:].T) if self._keep_text else None,
            extra={},
            after=block.after,
            done=block.done,
            file=block.file,
            line=block.start.line + lines[:, 0],
        )

    def _bad_line(self, block: Block, line: int, first: int, last: int) -> BadLine:
        text = block.data[first:last].tobytes()
        column, problem = self._diagnose(text)
        return BadLine(block.file, block.start.line + line, column, problem, text)

    def _diagnose(self, text: bytes) -> tuple[str | None, str]:
        """Return the field of a malformed line that is wrong, and the reason."""
        label, *entries = text.partition(b"#")[0].split()
        if b":" in label and not self._labelled:
            label, entries = b"0", [label, *entries]
        if b":" in label:
            return "label", "the label is missing; a line begins with it, as in 1 3:0.5"
        if b"," in label:
            return "label", f"{_show(label)} has several labels; a row has one label"
        number = _float(label)
        if number is None or not np.isfinite(number):
            return (
                "label",
                f"{_show(label)} is not a finite number; labels must be finite",
            )
        seen = set()
        for entry in entries:
            name, colon, value = entry.partition(b":")
            if not colon:
                return None, f"{_show(entry)} is not of the form index:value"
            if name == b"qid":
                if not _INTEGER.fullmatch(value):
                    return "qid", f"{_show(value)} is not an integer; a qid must be one"
                continue
            problem = self._index_problem(name) or self._value_problem(value)
            if problem:
                return name.decode("ascii", "backslashreplace"), problem
            column = int(name) - self._base
            if column in seen:
                return str(int(name)), "duplicate feature; add its values up"
            if self._n_features is None or column < self._n_features:
                seen.add(column)
        return None, _PUZZLE

    def _index_problem(self, name: bytes) -> str | None:
        if not _INTEGER.fullmatch(name):
            return f"the index {_show(name)} is not an integer of up to 18 digits"
        index = int(name)
        if index == 0 and self._base == 1:
            return (
                "index 0 in a file whose indices start at 1. If this file starts at 0, "
                f"train with {option('zero_based', True)}"
            )
        if index < self._base:
            return f"the index {index} is negative"
        if self._n_features is None and index - self._base >= self._max_features:
            remedy = "hash them to fewer features"
            if index - self._base < _MOST_FEATURES:
                most = option("max_features", index + 1 - self._base)
                remedy = f"{most}, or {remedy}"
            return (
                f"{index} is too large for an index; the limit is {self._max_features} "
                f"features. For more: {remedy}"
            )
        return None

    def _value_problem(self, value: bytes) -> str | None:
        number = _float(value)
        if number is None:
            return f"the value {_show(value)} is not a number"
        with np.errstate(over="ignore"):
            if np.isfinite(self._dtype.type(number)):
                return None
        if value[-1] <= NINE:
            return f"the value {_show(value)} is too large for {self._dtype}"
        if self._missing == "error":
            return (
                f"the value {_show(value)} is not finite; leave it out, or read it as "
                f"zero: {option('missing', 'zero')}"
            )
        return None


def _is_count(number: Any) -> bool:
    whole = isinstance(number, Integral) and not isinstance(number, bool)
    return whole and 0 < number <= _MOST_FEATURES


def _float(token: bytes) -> float | None:
    return float(token) if _NUMBER.fullmatch(token) else None


def _show(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _ask_python(
    data: NDArray[np.uint8],
    asked: NDArray[np.int64],
    y: NDArray[np.float64],
    values: NDArray[Any],
) -> list[int]:
    """Parse the values that the kernel leaves to Python; return non-finite rows."""
    wrong = []
    for row, place, first, last in asked.tolist():
        number = float(data[first:last].tobytes())
        with np.errstate(over="ignore"):
            value = values.dtype.type(number)
        if place >= 0:
            values[place] = value
        elif place == LABEL:
            y[row] = value = np.float64(number)
        if not np.isfinite(value):
            wrong.append(row)
    return wrong


def _sort(X: Any) -> list[int]:
    """Sort the entries of each row; return rows with duplicate features."""
    X.has_sorted_indices = False
    X.sort_indices()
    twice = np.flatnonzero(X.indices[1:] == X.indices[:-1]) + 1
    rows = np.searchsorted(X.indptr, twice, side="right") - 1
    return np.unique(rows[X.indptr[rows] < twice]).tolist()
