r"""The normal equations of the pairwise square loss.

.. math:: (H + \tfrac{l_2}{2} I)\, w = \Delta

H may be singular (copies of a feature, more features than rows), and the units of its
features may differ by many orders of magnitude. So systems are solved for features of
unit scale. There, a pivot of the Cholesky factor is the share of a feature that the
features before it do not explain.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, eigh, eigh_tridiagonal

from aucmax.core.jit import kernel
from aucmax.core.rows import Float

# A pivot below _PIVOT is rounding error. Then _JITTER is added to the diagonal: enough
# to make the solution unique, too little to change well-determined weights.
_PIVOT, _JITTER = 1e-12, 1e-10
# Eigenvalues have the rounding error of the largest one: beyond this ratio of the
# variances, the smallest would be inaccurate.
_MOST_RATIO = 1e10
# Changes, relative to the largest weight, that end coordinate descent, and that are
# accepted at max_iter (with copies of features it converges slowly).
_STILL, _ENOUGH = 1e-11, 1e-4
STILL_CHANGES = "the last change of a weight, relative to the largest,"  # for warnings
_EVERY = 10  # Lanczos steps between two checks of the residuals


class Solution(NamedTuple):
    """A minimum and its accuracy."""

    w: Float
    n_iter: int = 1
    left: float = 0.0  # relative residual, or relative change of the last round
    tol: float = 0.0  # accepted value of ``left``


def factor(H: Float, l2: float | Float) -> tuple[Float, Float]:
    """Return L and s with H + l2/2 I = (L/s)(L/s)ᵀ, L with unit rows."""
    scale = 1.0 / np.sqrt(np.diag(H) + 0.5 * l2)
    unit = H * scale * scale[:, None]
    np.fill_diagonal(unit, 1.0)
    try:
        L = cholesky(unit, lower=True)
        singular = np.diag(L).min(initial=1.0) ** 2 < _PIVOT
    except np.linalg.LinAlgError:
        singular = True
    if singular:
        L = cholesky(unit + _JITTER * np.eye(len(unit)), lower=True)
    return L, scale


def solve(H: Float, delta: Float, l2: float | Float) -> Float:
    """Minimise 1 - 2 Δ·w + w·H w + l2/2 ‖w‖²."""
    if not len(delta):  # an error in SciPy before 1.14
        return np.zeros(0)
    L, scale = factor(H, l2)
    w: Float = scale * cho_solve((L, True), scale * delta)
    return w


@kernel
def _descend(
    A: Float, delta: Float, threshold: float, w: Float, left: Float, max_iter: int
) -> tuple[int, float]:
    """Minimise w·A w - 2 Δ·w + 2 threshold ‖w‖₁; return rounds and last change."""
    change = 0.0
    for n_iter in range(1, max_iter + 1):
        largest = 0.0
        moved = 0.0
        for j in range(w.shape[0]):
            pull = left[j] + A[j, j] * w[j]
            new = np.sign(pull) * max(abs(pull) - threshold, 0.0) / A[j, j]
            step = new - w[j]
            if step != 0.0:
                w[j] = new
                for i in range(w.shape[0]):
                    left[i] -= step * A[j, i]
            unit = np.sqrt(A[j, j])  # in units of the score
            moved = max(moved, abs(step) * unit)
            largest = max(largest, abs(new) * unit)
        change = moved / largest if largest > 0.0 else 0.0
        if moved <= _STILL * largest:
            return n_iter, change
    return max_iter, change


def solve_lasso(
    H: Float, delta: Float, l2: float | Float, l1: float, max_iter: int
) -> Solution:
    """Minimise with the additional term l1 ‖w‖₁, by coordinate descent.

    scikit-learn's solver needs rows, here a root of H, which is ill-conditioned or does
    not exist if features are copies of each other.
    """
    A = H.copy()
    A[np.diag_indices_from(A)] += 0.5 * l2
    w = np.zeros(len(delta))
    n_iter, change = _descend(A, delta, 0.5 * l1, w, delta.copy(), max_iter)
    return Solution(w, n_iter, change, _ENOUGH)


def solve_any(
    H: Float,
    delta: Float,
    varies: NDArray[np.bool_],
    l2: float | Float,
    l1: float,
    max_iter: int,
) -> Solution:
    """Minimise J; constant features have weight zero."""
    if l1 > 0.0:
        found = solve_lasso(H, delta, l2, l1, max_iter)
    else:
        found = Solution(solve(H, delta, l2))
    w = np.zeros(len(varies))
    w[varies] = found.w
    return found._replace(w=w)


def solve_path(H: Float, delta: Float, l2s: Float) -> Float:
    """Return the minimum for each of ``l2s``, as columns: one eigendecomposition."""
    if not len(H):  # an error in SciPy before 1.14
        return np.zeros((0, len(l2s)))
    variances = np.diag(H)
    if variances.max(initial=0.0) > _MOST_RATIO * variances.min(initial=np.inf):
        return np.column_stack([solve(H, delta, float(l2)) for l2 in l2s])
    # "evd" is the fastest for many features; SciPy before 1.14 rejects it for one.
    values, vectors = eigh(H, driver="evd" if len(H) > 1 else "ev")
    along = vectors.T @ delta
    # Undetermined directions stay at zero, also without a penalty.
    known = values > len(values) * np.finfo(float).eps * values.max(initial=0.0)
    damping = np.where(known, values, np.inf)[:, None] + 0.5 * l2s
    path: Float = vectors @ (along[:, None] / damping)
    return path


def solve_krylov_path(
    product: Callable[[Float], Float],
    delta: Float,
    l2s: Float,
    tol: float,
    max_iter: int,
) -> Solution:
    """Return the minimum for each of ``l2s``, as columns, for H given by ``product``.

    A penalty does not change the Krylov space of H and Δ, so one run of Lanczos' method
    serves all penalties. Full reorthogonalisation costs 2 d m per step.
    """
    m = min(max_iter, len(delta))
    basis = np.empty((m, len(delta)))
    size = float(np.linalg.norm(delta))
    if size == 0.0:
        return Solution(np.zeros((len(delta), len(l2s))))
    diagonal, off_diagonal = np.zeros(m), np.zeros(m)
    vector, last = delta / size, 0
    for last in range(m):
        basis[last] = vector
        vector = product(vector)
        diagonal[last] = vector @ basis[last]
        known = basis[: last + 1]
        vector -= known.T @ (known @ vector)
        off_diagonal[last] = np.linalg.norm(vector)
        if off_diagonal[last] <= 1e-14 * diagonal[: last + 1].max():
            off_diagonal[last] = 0.0  # the space is exhausted
            break
        if last % _EVERY == 0:
            weights = _shifted(diagonal[: last + 1], off_diagonal[:last], l2s)
            if np.abs(weights[-1]).max() * off_diagonal[last] <= tol:  # the residuals
                break
        vector /= off_diagonal[last]
    weights = _shifted(diagonal[: last + 1], off_diagonal[:last], l2s)
    residual = float(np.abs(weights[-1]).max()) * float(off_diagonal[last])
    return Solution(basis[: last + 1].T @ (size * weights), last + 1, residual, tol)


def _shifted(diagonal: Float, off_diagonal: Float, l2s: Float) -> Float:
    """Return (T + l2/2 I)⁻¹ e₁ for each of ``l2s``, T the tridiagonal matrix."""
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    weights: Float = vectors @ (vectors[0][:, None] / (values[:, None] + 0.5 * l2s))
    return weights
