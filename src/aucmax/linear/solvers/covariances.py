"""Class covariances: sufficient statistics of the pairwise square loss.

A :class:`Moments` is a plain value. The moments of two sets of rows can be added and
subtracted, so any partition of the data into chunks, machines or folds gives the same
numbers up to rounding, in one pass.

Moments are kept about the class means (Chan, Golub and LeVeque, 1979), so that a
feature with mean 10⁶ and standard deviation 1 loses no digits.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from aucmax.base.class_moments import NEG, POS, ClassMoments
from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Index, Rows, as_rows, copy_row, mark_row, row_bytes
from aucmax.core.threads import in_threads
from aucmax.core.validation import (
    check_structure,
    check_values,
    check_width,
    refuse_mask,
    row_weights,
)

_BLOCK_VALUES = 1 << 18  # values that go through BLAS at a time: they stay in cache
_TASK_BYTES = 1 << 24  # fixed, so that sums do not depend on the number of threads
_SAMPLE = 32  # rows of a class whose mean is the reference point

# A feature is constant if its root mean square is below this share of its mean: the
# values differ by rounding.
_CONSTANT = 1e-14


class Moments(NamedTuple):
    """Counts, means and covariances of each class (positives first).

    ``a + b`` are the moments of both sets of rows together, ``a - b`` those of the rows
    of ``a`` that are not in ``b``. :meth:`aucmax.LeastSquaresAUC.fit_moments` fits a
    model to them.

    Examples
    --------
    >>> import numpy as np
    >>> from aucmax import LeastSquaresAUC, Moments
    >>> X, y = np.random.default_rng(0).standard_normal((100, 3)), np.arange(100) % 2
    >>> here, there = Moments.of(X[:60], y[:60]), Moments.of(X[60:], y[60:])
    >>> model = LeastSquaresAUC().fit_moments(here + there)
    >>> bool(np.allclose(model.coef_, LeastSquaresAUC().fit(X, y).coef_))
    True
    """

    weight: Float  # (2,) sum of the weights
    rows: Float  # (2,) number of rows of nonzero weight
    mean: Float  # (2, d)
    scatter: Float  # (2, d, d) Σ weight (x - mean)(x - mean)ᵀ
    nonzero: Float  # (2, d) weight of the rows in which a feature is nonzero

    @classmethod
    def empty(cls, n_features: int) -> "Moments":
        """Return the moments of an empty set of rows."""
        check_features(n_features, "Moments")
        d = n_features
        return cls(
            np.zeros(2),
            np.zeros(2),
            np.zeros((2, d)),
            np.zeros((2, d, d)),
            np.zeros((2, d)),
        )

    @classmethod
    def of(
        cls, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> "Moments":
        """Return the moments of the rows of ``X``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Labels: 1 or True for positive rows; 0, False or -1 for negative rows. One
            class may be missing.
        sample_weight : array-like of shape (n_samples,), default=None
            Row weights; weight k counts as k copies of the row.

        Returns
        -------
        Moments
            A value to pickle, send, add and subtract.
        """
        check_structure(X)
        X = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        refuse_mask(y, "y")
        labels = np.asarray(y)
        if labels.shape != (X.shape[0],):
            raise ValueError(f"y has shape {labels.shape}, X has {X.shape[0]} rows.")
        signed = _signs(labels)
        if sample_weight is not None:
            signed *= row_weights(sample_weight, len(signed))
        check_values(X, present=signed != 0.0)
        return gather(as_rows(X), signed, X.shape[1])

    def merge(self, other: "Moments") -> "Moments":
        """Return the moments of both sets of rows together."""
        self._check(other)
        return _by_side(_merge, self, other)

    def subtract(self, part: "Moments") -> "Moments":
        """Return the moments of the rows that are not in ``part``, a subset of them."""
        self._check(part)
        if np.any(part.rows > self.rows):
            raise ValueError(
                f"Cannot subtract {part.rows.tolist()} rows (positive, negative) from "
                f"{self.rows.tolist()}: they are not a subset."
            )
        return _by_side(_subtract, self, part)

    def __add__(self, other: Any) -> "Moments":
        return self.merge(other) if isinstance(other, Moments) else NotImplemented

    def __sub__(self, other: Any) -> "Moments":
        return self.subtract(other) if isinstance(other, Moments) else NotImplemented

    @property
    def finite(self) -> bool:
        """Whether all sums are finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.scatter).all())

    def quadratic(self) -> tuple[Float, Float, NDArray[np.bool_]]:
        r"""Return H and Δ of the pairwise square loss 1 - 2 Δ·w + w·H w.

        .. math:: H = S_+ + S_- + \\Delta \\Delta^T, \quad \\Delta = m_+ - m_-

        and a mask of the features that vary; H and Δ are restricted to them.
        """
        covariance = self.scatter / self.weight[:, None, None]
        delta = self.mean[POS] - self.mean[NEG]
        H = covariance[POS] + covariance[NEG] + np.outer(delta, delta)
        size = _CONSTANT * np.abs(self.mean).max(axis=0)
        # Tiny values have no inverse square.
        varies = np.sqrt(np.diag(H)) > np.maximum(size, 1e-150)
        if not varies.all():
            H, delta = H[np.ix_(varies, varies)], delta[varies]
        return H, delta, varies

    def class_moments(self) -> ClassMoments:
        """Return the moments of each feature alone."""
        weight, rows, mean, scatter, nonzero = self
        squares = np.diagonal(scatter, axis1=1, axis2=2)
        variance, share = (x / weight[:, np.newaxis] for x in (squares, nonzero))
        return ClassMoments(weight, rows, mean, variance, share)

    def _check(self, other: "Moments") -> None:
        if self.mean.shape != other.mean.shape:
            raise ValueError(
                f"Cannot combine moments of {self.mean.shape[1]} and of "
                f"{other.mean.shape[1]} features."
            )


def _signs(labels: NDArray[Any]) -> Float:
    """Return 1 for positive and -1 for negative labels; others are an error."""
    positive = np.asarray(labels == 1, dtype=np.bool_)
    for negative in (0, -1):
        if np.all(positive | (labels == negative)):
            return np.where(positive, 1.0, -1.0)
    try:
        found = np.unique(labels)
    except TypeError:  # labels that cannot be sorted
        found = labels
    listed = ", ".join(map(repr, found[:5].tolist())) + ", …" * (len(found) > 5)
    raise ValueError(
        f"y has the labels {listed}; expected 1 and 0, 1 and -1, or True and False. "
        "Pass y == label, for the positive label."
    )


def _by_side(job: Callable[..., Any], a: Moments, b: Moments) -> Moments:
    sides = [job([x[side] for x in a], [x[side] for x in b]) for side in (POS, NEG)]
    return Moments(*map(np.stack, zip(*sides, strict=True)))


def _merge(a: Sequence[Any], b: Sequence[Any]) -> Sequence[Any]:
    weight_a, rows_a, mean_a, scatter_a, nonzero_a = a
    weight_b, rows_b, mean_b, scatter_b, nonzero_b = b
    if rows_a == 0.0 or rows_b == 0.0:
        return b if rows_a == 0.0 else a
    weight = weight_a + weight_b
    share = weight_b / weight
    apart = mean_b - mean_a
    between = np.outer(apart, (weight_a * share) * apart)
    return (
        weight,
        rows_a + rows_b,
        mean_a + share * apart,
        scatter_a + scatter_b + between,
        nonzero_a + nonzero_b,
    )


def _subtract(whole: Sequence[Any], part: Sequence[Any]) -> Sequence[Any]:
    weight, rows, mean, scatter, nonzero = whole
    weight_a, rows_a, mean_a, scatter_a, nonzero_a = part
    if rows_a == 0.0:
        return whole
    if rows_a == rows:
        return [np.zeros_like(field) for field in whole]
    weight_b = weight - weight_a
    mean_b = mean + (weight_a / weight_b) * (mean - mean_a)
    apart = mean_b - mean_a
    between = np.outer(apart, (weight_a * (weight_b / weight)) * apart)
    scatter_b = scatter - scatter_a - between
    diagonal = np.einsum("ii->i", scatter_b)
    np.maximum(diagonal, 0.0, out=diagonal)  # rounding
    nonzero_b = np.maximum(nonzero - nonzero_a, 0.0)
    return weight_b, rows - rows_a, mean_b, scatter_b, nonzero_b


@kernel
def _centre(X: Any, y: Float, order: Index, ref: Float, size: int) -> None:
    """Set ``ref`` to the mean of the first ``size`` rows of each class."""
    x = np.zeros(ref.shape[1])
    zero = np.zeros(ref.shape[1])
    seen = np.zeros(2)
    for i in order:
        side = POS if y[i] > 0.0 else NEG
        if seen[side] < size:
            seen[side] += 1.0
            copy_row(X, i, 1.0, zero, x)
            for j in range(ref.shape[1]):
                ref[side, j] += (x[j] - ref[side, j]) / seen[side]
        elif seen[POS] >= size and seen[NEG] >= size:
            break


@kernel
def _fill(
    X: Any, y: Float, order: Index, ref: Float, block: Float, nonzero: Float
) -> int:
    """Copy rows to ``block``, positives from the top and negatives from the bottom.

    A row is centred on the ``ref`` of its class. It and a last column of ones are
    multiplied by the root of its weight, so that the Gram matrix of a class holds all
    its moments. Returns the number of positives.
    """
    top = 0
    bottom = block.shape[0]
    last = block.shape[1] - 1
    for i in order:
        root = np.sqrt(abs(y[i]))
        if y[i] > 0.0:
            copy_row(X, i, root, ref[POS], block[top])
            block[top, last] = root
            top += 1
            mark_row(X, i, y[i], nonzero, POS)
        else:
            bottom -= 1
            copy_row(X, i, root, ref[NEG], block[bottom])
            block[bottom, last] = root
            mark_row(X, i, -y[i], nonzero, NEG)
    return top


def _gather_part(X: Rows, y: Float, order: Index, n_features: int) -> Moments:
    """Return the moments of the rows ``order``, block by block."""
    d = n_features
    ref = np.zeros((2, d))
    _centre(X, y, order, ref, _SAMPLE)
    gram = np.zeros((2, d + 1, d + 1))
    size = min(max(_BLOCK_VALUES // (d + 1), 256), len(order))
    buffer = np.empty((size, d + 1))
    rows, nonzero = np.zeros(2), np.zeros((2, d))
    with np.errstate(all="ignore"):  # the caller checks the result
        for start in range(0, len(order), size):
            part = order[start : start + size]
            block = buffer[: len(part)]
            n_pos = _fill(X, y, part, ref, block, nonzero)
            for side, half in ((POS, block[:n_pos]), (NEG, block[n_pos:])):
                if len(half):
                    gram[side] += half.T @ half  # NumPy computes one triangle only
                    rows[side] += len(half)
        weight = gram[:, d, d].copy()
        off = gram[:, d, :d] / np.maximum(weight, 1e-300)[:, None]
        # From the reference point to the mean, which is near.
        scatter = (
            gram[:, :d, :d] - weight[:, None, None] * off[:, :, None] * off[:, None]
        )
        diagonal = np.einsum("sii->si", scatter)
        np.maximum(diagonal, 0.0, out=diagonal)  # rounding
    mean = np.where(rows[:, None] > 0.0, ref + off, 0.0)
    return Moments(weight, rows, mean, scatter, nonzero)


def gather(X: Rows, y: Float, n_features: int, order: Index | None = None) -> Moments:
    """Return the moments of the rows ``order``, of all rows if it is None.

    ``y`` holds the weights, signed by class. One pass; each thread needs memory for a
    block of rows and a result.
    """
    check_features(n_features, "Second moments")
    order = np.flatnonzero(y) if order is None else order[y[order] != 0.0]
    if not len(order):
        return Moments.empty(n_features)
    # Parts large enough to be worth a thread, in bytes and relative to a result.
    size = max(int(_TASK_BYTES / max(row_bytes(X), 1.0)), 8 * n_features, 1)
    parts = [order[start : start + size] for start in range(0, len(order), size)]
    total: Moments | None = None
    for part in in_threads(lambda part: _gather_part(X, y, part, n_features), parts):
        total = part if total is None else total + part
    assert total is not None
    return total


def check_features(n_features: int, who: str) -> None:
    """Raise an error if covariances of ``n_features`` exceed the memory limit."""
    check_width(
        n_features,
        2,
        f"{who} are two d x d matrices",
        "LeastSquaresAUC.fit can do without them; for streams there are learners in "
        "O(d) memory, such as SPAM.",
    )
