r"""Pairwise losses over all pairs of rows, without enumerating the pairs.

For scores s and a loss ℓ: the mean of ℓ(s_i - s_j) over all pairs, its gradient by the
scores and products with its Hessian, each in O(n log n) or O(n):

* **hinge and squared hinge**: one sort of the scores, with those of the negatives
  raised by the margin. A pair contributes if it is out of order; sweeps with running
  sums add these up. The running sum is that of distances, Σ (t - tᵢ)², updated from one
  score to the next, so that only positive numbers are added: there is no cancellation.
  Products with the Hessian reuse the sort.
* **smoothed hinge and Huber**: differences of squared hinges with other margins, and of
  the square loss.
* **square**: class means and variances suffice.
* **exponential**: exp(s_j - s_i) is a product, and so is its mean.
* **logistic and sigmoid**: a convolution of the two classes' histograms on a grid
  (:class:`_Grid`), with an error bound that does not depend on the scores.

Rows are weighted by *shares* of their class, signed by class. Shares sum to one, so
10⁹ times 10⁹ pairs do not overflow. A *point* is the loss at given scores: its value,
its gradient by the scores, and the data that Hessian products need.
"""

from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.fft import irfft, rfft
from scipy.special import expit

from aucmax.core.jit import kernel
from aucmax.core.rows import Float, Index

# Logistic and sigmoid: grid points per unit of the score, for loss and gradient and for
# second derivatives, and their maximum.
FINENESS, ROUGHLY = 128.0, 16.0
MOST_POINTS = 1 << 20
_FAR = 48.0  # e⁻⁴⁸ is negligible: beyond, the losses are straight lines


def shares(y: Float) -> Float:
    """Return the weights of the rows as shares of their class, signed by class."""
    positive = y > 0.0
    total = y[positive].sum(), -y[~positive].sum()
    return y / np.where(positive, *total)


class Point:
    """Mean of a pairwise loss at given scores, and its derivatives."""

    value: float
    slope: Float  # by each score

    def __init__(self, score: Float, share: Float) -> None:
        raise NotImplementedError

    def product(self, v: Float) -> Float:
        """Return the Hessian, n × n, times ``v``."""
        raise NotImplementedError

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        raise NotImplementedError


def sort(t: Float) -> tuple[Float, Index]:
    """Return t sorted, and its order."""
    order = np.argsort(t)
    return t[order], order


@kernel
def _sweep(
    t: Float,
    order: Index,
    share: Float,
    squared: bool,
    slope: Float,
    mass: Float,
    value: Float,
) -> None:
    """Sum tⱼ - tᵢ or its square over the pairs with tᵢ < tⱼ, in two sweeps.

    t and ``share`` are sorted; results are in the order of rows. ``mass`` is the share
    of the other class that a row forms such pairs with.
    """
    n = order.shape[0]
    total = 0.0
    for way in range(2):
        other = 0.0  # share of the other class passed so far, …
        first = 0.0  # … its summed distance, …
        second = 0.0  # … and squared distance
        tied = 0.0  # share at exactly this score, not counted yet
        before = t[0] if way == 0 else t[n - 1]
        for step in range(n):
            k = step if way == 0 else n - 1 - step
            apart = abs(t[k] - before)
            if apart > 0.0:
                before = t[k]
                other += tied
                tied = 0.0
                second += apart * (2.0 * first + other * apart)
                first += other * apart
            if (share[k] > 0.0) == (way == 0):  # upwards: add positives, read negatives
                tied += abs(share[k])
            else:
                mass[order[k]] = other
                slope[order[k]] = -share[k] * (2.0 * first if squared else other)
                if way == 0:
                    total -= share[k] * (second if squared else first)
    value[0] = total


@kernel
def _along(
    t: Float, order: Index, share: Float, mass: Float, v: Float, out: Float
) -> None:
    """Set ``out`` to the Hessian of the squared hinge times v, in two sweeps."""
    n = order.shape[0]
    for way in range(2):
        other = 0.0  # Σ share v of the other class
        tied = 0.0
        before = t[0] if way == 0 else t[n - 1]
        for step in range(n):
            k = step if way == 0 else n - 1 - step
            i = order[k]
            if t[k] != before:
                before = t[k]
                other += tied
                tied = 0.0
            if (share[k] > 0.0) == (way == 0):
                tied += abs(share[k]) * v[i]
            else:
                out[i] = 2.0 * abs(share[k]) * (mass[i] * v[i] - other)


class Hinge(Point):
    """Mean of max(0, margin - (s_i - s_j)); ``slope`` is a subgradient."""

    _squared = False

    def __init__(self, score: Float, share: Float, margin: float = 1.0) -> None:
        self.share = share
        self.t, self.order = sort(score + margin * (share < 0.0))
        self.sorted_share = share[self.order]
        self.slope, self.mass = np.empty_like(score), np.empty_like(score)
        value, pairs = np.empty(1), (self.t, self.order, self.sorted_share)
        _sweep(*pairs, self._squared, self.slope, self.mass, value)
        self.value = float(value[0])


class SquaredHinge(Hinge):
    """Mean of max(0, margin - (s_i - s_j))²."""

    _squared = True

    def product(self, v: Float) -> Float:
        """Return the (generalised) Hessian times ``v``."""
        out = np.empty_like(v)
        _along(self.t, self.order, self.sorted_share, self.mass, v, out)
        return out

    def diagonal(self) -> Float:
        """Return the diagonal of the (generalised) Hessian."""
        return 2.0 * np.abs(self.share) * self.mass


class Square(Point):
    """Mean of (1 - (s_i - s_j))²."""

    def __init__(self, score: Float, share: Float) -> None:
        self.weight, self.positive = np.abs(share), (share > 0.0).astype(np.intp)
        off, apart = self._centre(score)
        self.value = float(np.sum(self.weight * off * off)) + (1.0 - apart) ** 2
        self.slope = 2.0 * (self.weight * off - (1.0 - apart) * share)

    def _centre(self, v: Float) -> tuple[Float, float]:
        """Return v minus the class means, and the difference of the means."""
        middle = np.bincount(self.positive, self.weight * v, 2)
        return v - middle[self.positive], float(middle[1] - middle[0])

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``."""
        off, apart = self._centre(v)
        return 2.0 * self.weight * (off + np.where(self.positive, apart, -apart))

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        return 2.0 * self.weight


class _Sum(Point):
    """Weighted sum of losses of the scores, or of the negated scores."""

    def __init__(self, *terms: tuple[float, float, Point]) -> None:
        self.terms = terms  # weight, sign of the scores, loss
        self.value = float(sum(weight * point.value for weight, _, point in terms))
        self.slope = np.zeros_like(terms[0][2].slope)
        for weight, sign, point in terms:
            self.slope += weight * sign * point.slope

    def product(self, v: Float) -> Float:
        """Return the (generalised) Hessian times ``v``."""
        out = np.zeros_like(v)
        for weight, _, point in self.terms:
            out += weight * point.product(v)
        return out

    def diagonal(self) -> Float:
        """Return the diagonal of the (generalised) Hessian."""
        out = np.zeros_like(self.slope)
        for weight, _, point in self.terms:
            out += weight * point.diagonal()
        return np.maximum(out, 0.0)  # below zero is rounding: the sum is convex


class SmoothedHinge(_Sum):
    """Mean of ½ - m for m = s_i - s_j < 0, ½ (1 - m)² up to 1, and 0 beyond."""

    def __init__(self, score: Float, share: Float) -> None:
        near, far = SquaredHinge(score, share), SquaredHinge(score, share, 0.0)
        super().__init__((0.5, 1.0, near), (-0.5, 1.0, far))


class Huber(_Sum):
    """Mean of Huber's loss of r = 1 - (s_i - s_j): ½ r² if |r| ≤ 1, else |r| - ½."""

    def __init__(self, score: Float, share: Float) -> None:
        low, high = SquaredHinge(score, share, 0.0), SquaredHinge(-score, share, -2.0)
        square = Square(score, share)
        super().__init__((0.5, 1.0, square), (-0.5, 1.0, low), (-0.5, -1.0, high))


class Exponential(Point):
    """Mean of exp(-(s_i - s_j)): the product of a mean over each class."""

    def __init__(self, score: Float, share: Float) -> None:
        self.positive = share > 0.0
        power = np.where(self.positive, -score, score)
        log_value = 0.0
        self.part = np.abs(share)  # of a row in the sum of its class
        for side in (self.positive, ~self.positive):
            top = float(power[side].max())
            self.part[side] *= np.exp(power[side] - top)
            total = float(self.part[side].sum())
            self.part[side] /= total
            log_value += top + np.log(total)
        self.value = float(np.exp(min(log_value, 709.0)))
        self.slope = self.value * np.where(self.positive, -self.part, self.part)

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``."""
        weighed = self.part * v
        of_pos = float(weighed[self.positive].sum())
        of_neg = float(weighed[~self.positive].sum())
        return self.value * self.part * (v - np.where(self.positive, of_neg, of_pos))

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        return self.value * self.part


@kernel
def scatter(place: Index, off: Float, share: Float, amount: Float, grid: Float) -> None:
    """Add amounts to the grids of both classes, by cubic interpolation."""
    for i in range(place.shape[0]):
        side = 0 if share[i] > 0.0 else 1
        k, f = place[i], off[i]
        a, b, c = f + 1.0, f - 1.0, f - 2.0
        grid[side, k - 1] -= amount[i] * (f * b * c / 6.0)
        grid[side, k] += amount[i] * (a * b * c / 2.0)
        grid[side, k + 1] -= amount[i] * (a * f * c / 2.0)
        grid[side, k + 2] += amount[i] * (a * f * b / 6.0)


@kernel
def read(place: Index, off: Float, share: Float, grid: Float, out: Float) -> None:
    """Set ``out`` to values of the grid of each row's class, by cubic interpolation."""
    for i in range(place.shape[0]):
        side = 0 if share[i] > 0.0 else 1
        k, f = place[i], off[i]
        a, b, c = f + 1.0, f - 1.0, f - 2.0
        out[i] = (
            (a * b * c / 2.0) * grid[side, k]
            - (f * b * c / 6.0) * grid[side, k - 1]
            - (a * f * c / 2.0) * grid[side, k + 1]
            + (a * f * b / 6.0) * grid[side, k + 2]
        )


def _logistic(m: Float) -> tuple[Float, Float, Float]:
    """Return log(1 + e⁻ᵐ) and its first two derivatives."""
    falling, rising = expit(-m), expit(m)
    return np.logaddexp(0.0, -m), -falling, falling * rising


def _sigmoid(m: Float) -> tuple[Float, Float, Float]:
    """Return 1 / (1 + eᵐ) and its first two derivatives."""
    falling, rising = expit(-m), expit(m)
    bump = falling * rising
    return falling, -bump, bump * (rising - falling)


@lru_cache(maxsize=16)
def spectra(loss: Any, points: int, spacing: float) -> tuple[Any, ...]:
    """Return the Fourier transforms of a loss and its derivatives on a grid."""
    at = np.arange(2 * points, dtype=np.float64)
    at[points:] -= 2 * points  # differences of places: negative ones from the end
    return tuple(rfft(values) for values in loss(spacing * at))


def _folded(score: Float, share: Float) -> tuple[Float, float]:
    """Return scores without their wide gaps, and the loss that those add if linear.

    Pairs across a gap stay ``_FAR`` apart, where the logistic loss is a straight line.
    So an outlier needs no grid points between it and the others.
    """
    found, place = np.unique(np.floor(score / _FAR), return_inverse=True)
    cut = np.maximum(np.diff(found) - 2.0, 0.0) * _FAR
    below = np.cumsum(np.bincount(place, np.maximum(share, 0.0)))[:-1]
    above = np.cumsum(np.bincount(place, np.maximum(-share, 0.0))[::-1])[::-1][1:]
    shift = np.append(0.0, np.cumsum(cut))
    shift -= shift[np.argmax(np.bincount(place))]  # most scores keep all digits
    return score - shift[place], float(np.sum(cut * below * above))


class _Grid:
    r"""Sums of a smooth function of differences, by convolution of histograms.

    Each class is distributed on a grid of spacing h by cubic interpolation, convolved
    with the loss, and interpolated at the scores of the other class. The error of an
    interpolation is at most 3/128 h⁴ M, with M the largest fourth derivative; the first
    one adds at most 5/4 of this. With h = 1/128 and M of 1/8 to 0.6 for these losses
    and their first two derivatives, the error is **below 10⁻¹⁰** for any scores, as the
    grid grows with their range. With h = 1/16, for second derivatives, it is **below
    5·10⁻⁷**: enough for Newton steps, and several times as fast. The grid gets coarser
    only beyond 2²⁰ points: 8 192 units of the score without a wide gap. The cost is
    O(n + B log B) with B grid points; nothing is sorted.
    """

    def __init__(
        self, loss: Any, score: Float, share: Float, fineness: float = FINENESS
    ) -> None:
        self.share = share
        self.far = 0.0  # linear loss across wide gaps, not in the sums
        low, high = float(score.min()), float(score.max())
        if high - low > 16.0 * _FAR:
            score, self.far = _folded(score, share)
            low, high = float(score.min()), float(score.max())
        needed = (high - low) * fineness + 8.0
        self.points = 1 << int(np.ceil(np.log2(min(needed, MOST_POINTS))))
        self.spacing = max(1.0 / fineness, (high - low) / (self.points - 4))
        x = (score - low) / self.spacing
        self.place = np.minimum(x.astype(np.int64), self.points - 4) + 1
        self.off = x - (self.place - 1)
        self.spectra = spectra(loss, self.points, self.spacing)
        self.histogram = self._transform(np.abs(share))

    def value(self) -> float:
        """Return the mean loss, by Parseval's theorem."""
        pos, neg = self.histogram
        each = (np.conj(pos) * self.spectra[0] * neg).real
        return float(2.0 * each.sum() - each[0] - each[-1]) / (2 * self.points)

    def sums(self, k: int, amount: Float | None = None) -> Float:
        """Return, for each row, the k-th derivative summed over the other class.

        A row counts by its share, or by ``amount``.
        """
        pos, neg = self.histogram if amount is None else self._transform(amount)
        spectrum, size, out = (
            self.spectra[k],
            2 * self.points,
            np.empty(len(self.place)),
        )
        both = np.stack(
            [irfft(spectrum * neg, size), irfft(spectrum.conj() * pos, size)]
        )
        read(self.place, self.off, self.share, both, out)
        return out

    def _transform(self, amount: Float) -> tuple[Any, Any]:
        grid = np.zeros((2, 2 * self.points))
        scatter(self.place, self.off, self.share, amount, grid)
        return rfft(grid[0]), rfft(grid[1])


class _Smooth(Point):
    """Mean of a smooth loss."""

    _loss: Any
    _slope_at_the_end: float  # minus the derivative of the loss at -∞

    def __init__(self, score: Float, share: Float) -> None:
        self.score, self.share = score, share
        self.grid = _Grid(self._loss, score, share)
        self.value = self.grid.value() + self._slope_at_the_end * self.grid.far
        self.slope = share * self.grid.sums(1)

    @cached_property
    def _curvature(self) -> tuple[_Grid, Float]:
        """Grid of second derivatives, and their sums."""
        grid = _Grid(self._loss, self.score, self.share, ROUGHLY)
        return grid, grid.sums(2)

    def product(self, v: Float) -> Float:
        """Return the Hessian times ``v``."""
        weight, (grid, mass) = np.abs(self.share), self._curvature
        return weight * (mass * v - grid.sums(2, weight * v))

    def diagonal(self) -> Float:
        """Return the diagonal of the Hessian."""
        return np.abs(self.share) * self._curvature[1]


class Logistic(_Smooth):
    """Mean of log(1 + exp(-(s_i - s_j)))."""

    _loss = staticmethod(_logistic)
    _slope_at_the_end = 1.0


class Sigmoid(_Smooth):
    """Mean of 1 / (1 + exp(s_i - s_j)): the nearest to 1 - AUC, not convex."""

    _loss = staticmethod(_sigmoid)
    _slope_at_the_end = 0.0


POINTS: dict[str, type[Point]] = {
    "squared_hinge": SquaredHinge,
    "logistic": Logistic,
    "sigmoid": Sigmoid,
    "exponential": Exponential,
    "square": Square,
    "smoothed_hinge": SmoothedHinge,
    "huber": Huber,
    "hinge": Hinge,
}
