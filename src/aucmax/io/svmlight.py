"""The svmlight (LIBSVM) format: ``label index:value index:value … # comment``.

A kernel reads each block of text without holding the interpreter lock, so reading runs
beside training. It leaves unusual numbers to a library, and malformed lines to Python
code that finds out what is wrong.
"""

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aucmax.core.validation import DataWarning
from aucmax.io.batch import START, BadLine, Batch, Lines, Position
from aucmax.io.compression import STDIN
from aucmax.io.svmlight_scan import COLON, LABEL, MALFORMED, ROW, WIDTH, read_block
from aucmax.io.text import Block, Text, empty_input
from aucmax.tables.labels import Task

_INDEX_LIMIT = 2**31 - 1  # column numbers have 32 bits
# More than any known data set has; the state of a learner would take 10 GB.
MAX_FEATURES = 2**27

_NUMBER = re.compile(
    rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_INTEGER = re.compile(rb"[+-]?\d{1,18}")  # always fits into 64 bits
_QUERY = re.compile(rb"^(?:[^#\n]*\s)?qid:", re.MULTILINE)
_QUERY_BYTES = 1 << 14  # bytes searched for qid: files have it in all lines or in none
_FEW_TOKENS = 256  # parsed by Python: importing Arrow takes longer
_NEWLINE, _NINE = b"\n9"
_PUZZLE = "malformed svmlight line"


class SvmlightSource:
    """Rows of svmlight files.

    Lines may have comments (``#``), ``qid:n`` and indices in any order; blank lines are
    skipped. A line is malformed if its label or a value is not a finite number (in the
    given float type), or if an index is not an integer, out of range or a duplicate.

    Parameters
    ----------
    paths : str, sequence of str or Text
        See :class:`aucmax.io.text.Text`.
    dtype : type, default=np.float64
        Type of the values: float64, or float32, to which float64 values are rounded.
    zero_based : bool, default=False
        Whether indices start at 0 instead of 1.
    n_features : int, default=None
        Number of features; further ones are ignored. None: the width of the widest row
        so far.
    max_features : int, default=2**27
        Largest number of features if ``n_features`` is None. A line with an index
        beyond it is malformed: one wrong index would exhaust the memory of learners.
    missing : {"error", "zero"}, default="error"
        Whether nan and inf make the line malformed or are read as zero.
    keep_text : bool, default=False
        Whether ``Batch.text`` has the text of the rows.
    labelled : bool, default=True
        Whether to read labels. If False, lines may begin with an entry.
    prompt : bool, default=False
        See :meth:`aucmax.io.text.Text.blocks`.

    Attributes
    ----------
    files : list of str
        Files to read, in this order.
    size : int or None
        Total size of the files on disk in bytes; None if unknown.
    """

    task: Task | None = None  # the format does not tell which labels are positive

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
        if n_features is not None:
            _check_count("n_features", n_features)
        _check_count("max_features", max_features)
        self._text = paths if isinstance(paths, Text) else Text(paths)
        self._prompt = prompt
        self.files, self.size = self._text.files, self._text.size
        self._base = 0 if zero_based else 1
        self._n_features, self._max_features = n_features, max_features
        self._missing = missing
        self._keep_text = keep_text
        self._labelled = labelled
        self._cut_rows = self._cut_width = 0

    @property
    def n_features(self) -> int | None:
        """Number of features; None: that of the widest row so far."""
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

    def feature_names(self) -> list[str] | None:
        """Return None: features have numbers only."""
        return None

    def batches(self, start: Position = START) -> Iterator[Batch]:
        """Read batches from ``start`` on.

        Empty standard input is an error, unless labels are not read.
        """
        width = self._n_features or 0
        self._cut_rows = self._cut_width = n_blocks = 0
        for block in self._text.blocks(start, self._prompt):
            n_blocks += 1
            self._warn_queries(block)
            batch = self._batch(block, width)
            width = batch.rows.shape[1]
            if batch.rows.shape[0] or batch.malformed:
                yield batch
        if self._cut_rows:
            self._warn_cut()
        none = not n_blocks and start == START  # else all was read before
        if none and self._labelled and self.files == [STDIN]:
            raise empty_input(self.files)

    def _warn_cut(self) -> None:
        """Warn about ignored features."""
        n = self._cut_rows
        rows = f"{n:,} row{' has' if n == 1 else 's have'}"
        warnings.warn(
            f"{', '.join(self.files)}: {rows} features beyond the {self._n_features:,} "
            f"of the model, up to number {self._cut_width - 1 + self._base:,}: "
            "these features are ignored.",
            DataWarning,
            stacklevel=2,
        )

    def _warn_queries(self, block: Block) -> None:
        """Warn if the first lines have query identifiers, which are ignored."""
        if block.start.line == 0 and _QUERY.search(block.data[:_QUERY_BYTES].tobytes()):
            warnings.warn(
                f"{self.files[0]}: qid is ignored: all rows are ranked together, "
                "not per query.",
                DataWarning,
                stacklevel=2,
            )

    def _batch(self, block: Block, width: int) -> Batch:
        data = block.data
        if data[-1] != _NEWLINE:  # the last line of a file
            data = np.append(data, np.uint8(_NEWLINE))
        n_lines = block.end.line - block.start.line
        n_colons = np.count_nonzero(data == COLON)
        y = np.empty(n_lines)
        indptr = np.zeros(n_lines + 1, np.int32)
        indices = np.empty(n_colons, np.int32)
        values = np.empty(n_colons, self._dtype)
        status = np.empty(n_lines, np.uint8)
        spans = np.empty((n_lines, 2), np.int32)
        deferred = np.empty((n_colons + n_lines, 4), np.int32)
        counts = np.zeros(7, np.int64)
        counts[WIDTH] = width
        limit, cut = self._n_features or self._max_features, bool(self._n_features)
        rows = (y, indptr, indices, values, status, spans, deferred, counts)
        read_block(data, self._base, limit, cut, self._labelled, *rows)
        n, nnz, n_deferred, read_width, unsorted, cut_rows, cut_width = counts.tolist()
        self._cut_rows += cut_rows
        self._cut_width = max(self._cut_width, cut_width)
        y, lines = y[:n], np.flatnonzero(status == ROW)
        malformed = self._parse_deferred(data, deferred[:n_deferred], y, values)
        X = sparse.csr_array(
            (values[:nnz], indices[:nnz], indptr[: n + 1]), shape=(n, read_width)
        )
        if unsorted:
            malformed += _sort(X)
        if malformed:
            status[lines[malformed]] = MALFORMED
            good = status[lines] == ROW
            X, y, lines = X[good], y[good], lines[good]
            width = max(width, int(X.indices.max(initial=-1)) + 1)
            X = sparse.csr_array((X.data, X.indices, X.indptr), (len(y), width))
        X.has_sorted_indices = X.has_canonical_format = True
        return Batch(
            rows=X,
            labels=y if self._labelled else None,
            weights=None,
            line_numbers=block.start.line + 1 + lines,
            malformed=[
                self._bad_line(block, line, *spans[line].tolist())
                for line in np.flatnonzero(status == MALFORMED).tolist()
            ],
            end=block.end,
            file=block.file,
            done=block.done,
            text=Lines(data.tobytes(), *spans[lines].T) if self._keep_text else None,
            extra={},
        )

    def _parse_deferred(
        self,
        data: NDArray[np.uint8],
        deferred: NDArray[np.int32],
        y: NDArray[np.float64],
        values: NDArray[Any],
    ) -> list[int]:
        """Parse the numbers that the kernel left; return rows with malformed ones."""
        if not len(deferred):
            return []
        rows, entries, spans = deferred[:, 0], deferred[:, 1], deferred[:, 2:]
        numbers = _parse_tokens(data, spans)
        is_label, kept = entries == LABEL, entries >= 0
        if self._missing == "zero":
            for i in np.flatnonzero(~np.isfinite(numbers) & ~is_label).tolist():
                token = data[slice(*spans[i])].tobytes()
                if _NUMBER.fullmatch(token) and token[-1] > _NINE:  # nan or inf
                    numbers[i] = 0.0
        y[rows[is_label]] = numbers[is_label]
        with np.errstate(over="ignore"):
            numbers[~is_label] = numbers[~is_label].astype(self._dtype)
        values[entries[kept]] = numbers[kept]
        return rows[~np.isfinite(numbers)].tolist()

    def _bad_line(self, block: Block, line: int, start: int, stop: int) -> BadLine:
        text = block.data[start:stop].tobytes()
        column, problem = self._diagnose(text)
        return BadLine(block.file, block.start.line + line + 1, column, problem, text)

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
            reason = f"{_show(label)} is not a finite number; labels must be finite"
            return "label", reason
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
                "train with zero_based=true"
            )
        if index < self._base:
            return f"the index {index} is negative"
        if self._n_features is None and index - self._base >= self._max_features:
            remedy = "hash them to fewer features"
            if index - self._base < _INDEX_LIMIT:
                most = f"max_features={index + 1 - self._base}"
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
        if value[-1] <= _NINE:
            return f"the value {_show(value)} is too large for {self._dtype}"
        if self._missing == "error":
            return (
                f"the value {_show(value)} is not finite; leave it out, or read it as "
                f"zero: missing=zero"
            )
        return None


def _check_count(name: str, number: Any) -> None:
    is_integer = isinstance(number, Integral) and not isinstance(number, bool)
    if not is_integer or not 0 < number <= _INDEX_LIMIT:
        raise ValueError(f"{name} must be from 1 to {_INDEX_LIMIT}, not {number!r}")


def _float(token: bytes) -> float | None:
    return float(token) if _NUMBER.fullmatch(token) else None


def _show(token: bytes) -> str:
    text = token.decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _parse_tokens(
    data: NDArray[np.uint8], spans: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Return the numbers at ``spans``, exactly rounded; NaN for malformed ones.

    Arrow parses many tokens at once, but rejects them all if one is malformed.
    """
    if len(spans) > _FEW_TOKENS:
        import pyarrow as pa

        # As offsets of strings, spans are tokens and the gaps between them in turn; the
        # bit mask makes the gaps null.
        offsets = spans.ravel()
        n = len(offsets) - 1
        mask = np.full(n // 8 + 1, 0b01010101, np.uint8)
        buffers = [pa.py_buffer(part) for part in (mask, offsets, data)]
        strings = pa.Array.from_buffers(pa.string(), n, buffers)
        try:
            numbers = strings.cast(pa.float64())
        except pa.ArrowInvalid:
            pass
        else:
            return numbers.to_numpy(zero_copy_only=False)[::2].copy()
    tokens = [data[start:stop].tobytes() for start, stop in spans.tolist()]
    numbers = map(_float, tokens)
    return np.array([np.nan if number is None else number for number in numbers])


def _sort(X: Any) -> list[int]:
    """Sort the entries of each row; return rows with duplicate features."""
    X.has_sorted_indices = False
    X.sort_indices()
    twice = np.flatnonzero(X.indices[1:] == X.indices[:-1]) + 1
    rows = np.searchsorted(X.indptr, twice, side="right") - 1
    return np.unique(rows[X.indptr[rows] < twice]).tolist()
