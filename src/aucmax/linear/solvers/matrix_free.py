"""Conjugate gradients on the normal equations, by products with X."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from aucmax.base.class_moments import (
    NEG,
    NOISE,
    POS,
    ROUNDING,
    TINY,
    ClassMoments,
    noise,
)
from aucmax.core.products import LocalMatrix, Matrix
from aucmax.core.rows import Float, Index, Rows, n_rows
from aucmax.linear.solvers.normal_equations import Solution


class MatrixFree:
    """Δ, the diagonal of H, and products with H."""

    delta: Float
    diagonal: Float
    varies: NDArray[np.bool_]  # features that are not constant
    noise: float  # sampling error of Δ, see aucmax.base.class_moments

    def times(self, v: Float) -> Float:
        """Return H v."""
        raise NotImplementedError

    def largest(self, unit: float | Float = 1.0) -> float:
        """Estimate the largest eigenvalue of H, for features times ``unit``."""
        v, size = unit * self.delta, 1.0
        for _ in range(10):
            size = float(np.abs(v).max())  # so that squares do not overflow
            if size == 0.0:
                return 1.0
            v = v / size
            v /= np.linalg.norm(v)
            v = unit * self.times(unit * v)
        return float(np.abs(v).max() * np.linalg.norm(v / np.abs(v).max()))

    def solve(self, l2: float | Float, tol: float | None, max_iter: int) -> Solution:
        """Minimise J by conjugate gradients."""
        safe = np.where(self.varies, self.diagonal + 0.5 * l2, np.inf)
        unit = 1.0 / np.sqrt(safe)  # solve for features of unit scale
        right = unit * self.delta
        tol = min(NOISE * self.noise, 0.5) if tol is None else tol
        rounds = 0

        def count(_: Float) -> None:
            nonlocal rounds
            rounds += 1

        def product(v: Float) -> Float:
            return unit * (self.times(unit * v) + 0.5 * l2 * unit * v)

        matrix = LinearOperator((len(unit), len(unit)), product, dtype=np.float64)
        v, short = cg(matrix, right, rtol=tol, maxiter=max_iter, callback=count)
        left = 0.0
        if short:
            left = float(np.linalg.norm(right - product(v)) / np.linalg.norm(right))
        return Solution(unit * v, max(rounds, 1), left, tol)


class AllPairs(MatrixFree):
    """The normal equations of all pairs of a positive and a negative row."""

    def __init__(self, X: Matrix, y: Float, moments: ClassMoments) -> None:
        self.X = X
        self.mean = moments.mean
        self.delta = self.mean[POS] - self.mean[NEG]
        self.diagonal = moments.variance.sum(axis=0) + self.delta**2
        self.noise = noise(moments)
        # A smaller variance is the rounding error of a constant feature.
        rounding = ROUNDING * (self.mean**2).max(axis=0)
        self.varies = self.diagonal > np.maximum(rounding, TINY)
        self.delta[~self.varies] = 0.0
        self.positive = (y > 0.0).astype(np.intp)
        self.share = np.abs(y) / np.where(y > 0.0, *moments.weight)

    def times(self, v: Float) -> Float:
        """Return H v, by products of the rows and scores about the class means."""
        v = np.where(self.varies, v, 0.0)
        # Rows of weight zero may hold any values.
        score = np.where(self.share > 0.0, self.X.times(v), 0.0)
        middle = np.bincount(self.positive, self.share * score, 2)
        off = self.share * (score - middle[self.positive])
        Hv = self.X.transposed_times(off)
        Hv += (middle[1] - middle[0]) * self.delta
        return np.where(self.varies, Hv, 0.0)


class SampledPairs(MatrixFree):
    """The normal equations of the pairs of rows (pos[k], neg[k])."""

    def __init__(self, X: Rows, pos: Index, neg: Index, moments: ClassMoments) -> None:
        self.X = LocalMatrix(X, moments.mean.shape[1])
        self.n, self.pos, self.neg = n_rows(X), pos, neg
        self.delta = self.X.transposed_times(self._to_rows(np.ones(len(pos))))
        everything = AllPairs(self.X, np.zeros(0), moments)
        self.varies = everything.varies
        self.delta[~self.varies] = 0.0
        self.diagonal = everything.diagonal  # close to that of the sample
        self.noise = noise(moments, len(pos))

    def _to_rows(self, u: Float) -> Float:
        """Return Σ u (e_pos - e_neg) / k over the k pairs."""
        each = np.bincount(self.pos, u, self.n) - np.bincount(self.neg, u, self.n)
        return each / len(self.pos)

    def times(self, v: Float) -> Float:
        """Return H v, the mean of z (z·v)."""
        v = np.where(self.varies, v, 0.0)
        score = self.X.times(v)
        along = self._to_rows(score[self.pos] - score[self.neg])
        return np.where(self.varies, self.X.transposed_times(along), 0.0)
