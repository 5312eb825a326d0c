"""Validation of arrays from users and from model files."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Options for scikit-learn's validation; finite values are checked during other work.
MATRIX: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}

_PART = 8192

MOST = 1e150  # largest value; its square and the inverse of that are finite
_MOST_BYTES = 4e9  # of d x d matrices


def check_weights(weight: NDArray[Any], limit: float = np.inf) -> None:
    """Raise an error if a weight is neither zero nor between 1/limit and limit."""
    positive = (weight >= 1.0 / limit) & (weight <= limit) & (weight < np.inf)
    bad = ~(positive | (weight == 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        size = "" if limit == np.inf else f", of a size between {1 / limit} and {limit}"
        raise ValueError(
            f"sample_weight is {weight[row]} at row {row}: "
            f"weights must be finite and not negative{size}"
        )


def refuse_mask(values: Any, name: str) -> None:
    """Raise an error for a masked array with masked values.

    ``np.asarray`` drops the mask, and the hidden values would be used.
    """
    if isinstance(values, np.ma.MaskedArray) and (mask := values.mask).any():
        count, row = int(mask.sum()), int(np.argwhere(mask)[0, 0])
        raise ValueError(
            f"{name} is a masked array with {count:,} masked values, the first at row "
            f"{row}; expected values only. Leave these rows out or fill the values, "
            f"for example by {name}.filled(numpy.nan) if missing values are allowed."
        )


def check_structure(X: Any) -> None:
    """Raise an error if X is masked, has no numbers, or indices out of range; O(nnz).

    scikit-learn drops a mask, and takes dates and bytes as numbers. SciPy checks when
    it builds a matrix, not when its arrays change later, and not every index. A kernel
    would read or write out of bounds.
    """
    refuse_mask(X, "X")
    for dtype in [X.dtype] if hasattr(X, "dtype") else getattr(X, "dtypes", ()):
        if getattr(dtype, "kind", "O") in "MmS":
            raise ValueError(
                f"X has values of type {dtype}; expected numbers. Convert them, for "
                "example dates to days since the first one."
            )
    if not sparse.issparse(X) or X.ndim != 2:
        return
    if X.format == "bsr":
        X.check_format(full_check=True)
        return
    if X.format == "coo":
        _check_coordinates(X)
        return
    if X.format not in ("csr", "csc"):
        check_structure(X.tocsr())
        return
    major, minor = X.shape if X.format == "csr" else X.shape[::-1]
    line, entry = ("row", "column") if X.format == "csr" else ("column", "row")
    indptr, indices = X.indptr, X.indices
    if indptr.shape != (major + 1,) or {indptr.dtype.kind, indices.dtype.kind} != {"i"}:
        raise ValueError(
            f"Input X is not a valid {X.format.upper()} matrix: indptr has type "
            f"{indptr.dtype} and shape {indptr.shape}, indices {indices.dtype}; "
            f"expected integers, and {major + 1} of them in indptr."
        )
    stored = min(len(indices), len(X.data))
    falls = indptr[1:] < indptr[:-1]
    if indptr[0] != 0 or indptr[-1] > stored or falls.any():
        at = int(np.argmax(falls)) if falls.any() else 0 if indptr[0] else major - 1
        raise ValueError(
            f"Input X is not a valid {X.format.upper()} matrix: by indptr, {line} {at} "
            f"goes from {indptr[at]} to {indptr[at + 1]} of {stored} stored values; "
            "indptr must start at 0, never decrease and not exceed their number."
        )
    used = indices[: indptr[-1]]
    # As an unsigned number, a negative index is a large one.
    if used.size and used.view(f"u{used.itemsize}").max() >= minor:
        at = int(np.argmax((used < 0) | (used >= minor)))
        where = int(np.searchsorted(indptr, at, side="right")) - 1
        raise ValueError(
            f"Input X has {entry} index {used[at]} in {line} {where}, but only "
            f"{minor} {entry}s; X.check_format() finds such entries."
        )


def _check_coordinates(X: Any) -> None:
    """Raise an error if a COO matrix has indices out of range."""
    if not len(X.row) == len(X.col) == len(X.data):
        raise ValueError(
            f"Input X is not a COO matrix: it has {len(X.row)} row indices, "
            f"{len(X.col)} column indices and {len(X.data)} values."
        )
    for line, indices, length in zip(
        ("row", "column"), (X.row, X.col), X.shape, strict=True
    ):
        bad = (indices < 0) | (indices >= length)
        if indices.dtype.kind != "i" or bad.any():
            at = int(np.argmax(bad))
            raise ValueError(
                f"Input X has {line} index {indices[at]} at its stored value {at}; it "
                f"must be an integer between 0 and {length - 1}."
            )


def check_width(n_features: int, matrices: float, what: str, remedy: str) -> None:
    """Raise an error if ``matrices`` of size d x d exceed 4 GB; 0.5 is a triangle."""
    size = 8.0 * matrices * n_features**2
    if size > _MOST_BYTES:
        raise ValueError(
            f"{what}: {n_features} features would take {size / 1e9:.1f} GB. {remedy}"
        )


def row_weights(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """Return validated weights of ``n`` rows; a number is the weight of each."""
    refuse_mask(sample_weight, "sample_weight")
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n,)}: one per row."
        )
    check_weights(weight, MOST)
    return weight


def _squares(flat: NDArray[Any]) -> Iterator[float]:
    """Yield sums of squares of parts that are too small for BLAS to use threads.

    More threads gain little here, and compete with the one that reads data.
    """
    for start in range(0, flat.size, _PART):
        part = flat[start : start + _PART]
        yield float(np.dot(part, part))


def check_values(
    X: Any,
    names: Sequence[Any] | NDArray[Any] | None = None,
    present: NDArray[np.bool_] | None = None,
) -> None:
    """Raise an error for the first value of ``X`` that is NaN, infinite or too large.

    Rows that are not ``present`` are ignored. The usual case is one sum of squares.
    """
    values = X.data if sparse.issparse(X) else X
    flat = values.ravel(order="K")
    with np.errstate(over="ignore"):
        if np.isfinite(sum(_squares(flat))):
            return
    bad = ~(np.abs(values) <= min(MOST, float(np.finfo(values.dtype).max)))
    if present is not None:
        if sparse.issparse(X):
            bad &= np.repeat(present, np.diff(X.indptr))
        else:
            bad &= present[:, np.newaxis]
    count = int(np.count_nonzero(bad))
    if count == 0:  # float32 squares overflow early
        return
    at = int(np.argmax(bad))
    value = values.ravel()[at]
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, at, side="right")) - 1
        column = int(X.indices[at])
    else:
        row, column = divmod(at, X.shape[1])
    kind = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value}"
    if np.isfinite(value):
        remedy = "squares exceed the range of float64: rescale the feature"
    else:
        remedy = "impute or drop such rows"
    name = "" if names is None else f" ({names[column]!r})"
    more = f", and {count - 1} more such values" if count > 1 else ""
    raise ValueError(
        f"Input X contains {kind} at row {row}, column {column}{name}{more}; {remedy}"
    )


class DataWarning(UserWarning):
    """Part of the data is ignored or interpreted in a way the user may not expect."""
