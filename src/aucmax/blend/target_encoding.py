"""Target encoding: log-odds of the positive class for categories and combinations.

A category that has :math:`s` positives among :math:`n` rows becomes the log-odds of
:math:`(s + a p) / (n + a)`, where :math:`p` is the share of positives among rows with a
new category, which has no rows in the other inner folds. Training rows are encoded by
the other inner folds, or models would trust a category of one row, and their own row
does not count. The shrinkage :math:`a` is the one with the lowest log loss of the
training rows encoded so.

Categories of a single row are kept: to a new row of such a category, that row tells as
much as one row tells to the other in a category of two.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aucmax.core.rows import Float
from aucmax.metrics import auc
from aucmax.storage.state import whole_numbers

Ints = NDArray[np.int64]

_SHRINKAGES = (1.0, 4.0, 16.0, 64.0)
_INNER_FOLDS = 5
_PRIOR_ROWS = 20.0  # by which the share among new categories is shrunk to that of all
_MOST_ODDS = 1e4
_MOST_ENCODED = 10  # terms whose pairs are tried
_FLOATS = ("odds", "counts", "defaults", "fewest")
_ARRAYS = ("columns", "ends", "keys", "key_ends", *_FLOATS)


class TargetEncoding(NamedTuple):
    """Log-odds and numbers of rows of the values of terms.

    A term is a column of codes, or a combination of several.
    """

    columns: Ints  # of all terms, one term after another
    ends: Ints  # (terms,) of each term in ``columns``
    keys: Ints  # values of all terms, increasing within a term
    key_ends: Ints  # (terms,) of each term in ``keys``
    odds: Float  # log-odds of each key
    counts: Float  # logarithm of one plus its rows
    defaults: Float  # (terms,) log-odds of new values
    fewest: Float  # (terms,) smallest count of a training row, and that of new values

    @classmethod
    def fit(
        cls,
        codes: Ints,
        sizes: Ints,
        positive: NDArray[np.bool_],
        weight: Float,
        terms: Sequence[Sequence[int]],
        rng: np.random.RandomState,
    ) -> tuple["TargetEncoding", Float]:
        """Return the encoding of training rows, and these rows encoded.

        ``codes`` (n, columns) are below ``sizes`` (columns,).
        """
        inner = _inner_folds(positive, rng)
        share = float(weight[positive].sum() / weight.sum())
        all_keys: list[Ints] = [np.zeros(0, np.int64)]
        found: list[_EncodedTerm] = []
        encoded = np.empty((len(codes), 2 * len(terms)))
        for k, term in enumerate(terms):
            keys, which = np.unique(_combined(codes, sizes, term), return_inverse=True)
            one = _cross_fitted(
                which.ravel(), len(keys), positive, weight, inner, share
            )
            all_keys.append(keys)
            found.append(one)
            encoded[:, k], encoded[:, len(terms) + k] = one.own_odds, one.own_counts
        return (
            cls(
                np.array([column for term in terms for column in term], np.int64),
                np.cumsum([len(term) for term in terms], dtype=np.int64),
                np.concatenate(all_keys),
                np.cumsum([len(one.odds) for one in found], dtype=np.int64),
                np.concatenate([np.zeros(0), *(one.odds for one in found)]),
                np.concatenate([np.zeros(0), *(one.counts for one in found)]),
                np.array([one.default for one in found]),
                encoded[:, len(terms) :].min(axis=0),
            ),
            encoded,
        )

    @property
    def terms(self) -> list[list[int]]:
        """The columns of each term."""
        starts = [0, *self.ends[:-1].tolist()]
        bounds = zip(starts, self.ends.tolist(), strict=True)
        return [self.columns[start:end].tolist() for start, end in bounds]

    def transform(self, codes: Ints, sizes: Ints) -> Float:
        """Return log-odds of all terms, then the logarithms of their rows."""
        n_terms, start = len(self.ends), 0
        encoded = np.empty((len(codes), 2 * n_terms))
        for k, (term, end) in enumerate(
            zip(self.terms, self.key_ends.tolist(), strict=True)
        ):
            keys, wanted = self.keys[start:end], _combined(codes, sizes, term)
            at = np.minimum(np.searchsorted(keys, wanted), max(end - start - 1, 0))
            hit = keys[at] == wanted if end > start else np.zeros(len(codes), bool)
            at += start
            encoded[:, k] = np.where(hit, self.odds[at], self.defaults[k])
            encoded[:, n_terms + k] = np.where(hit, self.counts[at], self.fewest[k])
            start = end
        return encoded

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        stored: dict[str, NDArray[Any]] = {
            name: getattr(self, name) for name in _ARRAYS
        }
        for name in _FLOATS:
            stored[name] = stored[name].astype(np.float32)
        return stored

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[Any]], sizes: Ints) -> "TargetEncoding":
        """Return the encoding of stored arrays; raise a ValueError if invalid."""
        columns = whole_numbers("columns", arrays["columns"], 0, len(sizes) - 1)
        ends = whole_numbers("terms", arrays["ends"], 0, len(columns))
        key_ends = whole_numbers("terms", arrays["key_ends"], 0, len(arrays["keys"]))
        keys = whole_numbers("keys", arrays["keys"], 0, 2**53)
        floats = [np.asarray(arrays[name], np.float64) for name in _FLOATS]
        odds, counts, defaults, fewest = floats
        finite = all(np.isfinite(part).all() for part in floats)
        rising = all((np.diff(part, prepend=0) >= 0).all() for part in (ends, key_ends))
        if (
            not (keys.shape == odds.shape == counts.shape == (len(keys),))
            or not (defaults.shape == fewest.shape == ends.shape)
            or (ends.ndim != 1 or ends.shape != key_ends.shape)
            or not (finite and rising)
            or (len(ends) and ends[-1] != len(columns))
            or (len(ends) and key_ends[-1] != len(keys))
        ):
            raise ValueError("the target encoding of the trees is invalid.")
        return cls(columns, ends, keys, key_ends, *floats)


def _inner_folds(positive: NDArray[np.bool_], rng: np.random.RandomState) -> Ints:
    fold = np.empty(len(positive), np.int64)
    for side in (False, True):
        rows = np.flatnonzero(positive == side)
        fold[rows] = rng.permutation(len(rows)) % _INNER_FOLDS
    return fold


def _combined(codes: Ints, sizes: Ints, term: Sequence[int]) -> Ints:
    """Return one number for the codes of several columns."""
    key = np.zeros(len(codes), np.int64)
    for column in term:
        key = key * sizes[column] + codes[:, column]
    return key


class _EncodedTerm(NamedTuple):
    """Log-odds and logarithms of one plus the rows, of keys and of training rows."""

    odds: Float
    counts: Float
    own_odds: Float  # by other inner folds
    own_counts: Float  # their own row does not count
    default: float  # log-odds of new keys


def _cross_fitted(
    which: Ints,
    n_keys: int,
    positive: NDArray[np.bool_],
    weight: Float,
    inner: Ints,
    share: float,
) -> _EncodedTerm:
    """Return the encoding of a term, which has the key ``which`` in each row."""
    place, cells = which * _INNER_FOLDS + inner, n_keys * _INNER_FOLDS
    shape = n_keys, _INNER_FOLDS
    rows = np.bincount(place, weight, cells).reshape(shape)
    hits = np.bincount(place, weight * positive, cells).reshape(shape)
    other_rows = rows.sum(axis=1)[which] - rows[which, inner]
    other_hits = hits.sum(axis=1)[which] - hits[which, inner]
    new = np.bincount(place, minlength=cells).reshape(shape)
    new = new.sum(axis=1)[which] == new[which, inner]
    prior = float(weight[new & positive].sum() + _PRIOR_ROWS * share)
    prior /= float(weight[new].sum() + _PRIOR_ROWS)
    best, lowest = np.zeros(0), np.inf
    shrinkage = _SHRINKAGES[0]
    for a in _SHRINKAGES:
        odds = _log_odds((other_hits + a * prior) / (other_rows + a))
        loss = float(weight @ np.logaddexp(0.0, np.where(positive, -odds, odds)))
        if loss < lowest:
            best, lowest, shrinkage = odds, loss, a
    total = rows.sum(axis=1)
    odds = _log_odds((hits.sum(axis=1) + shrinkage * prior) / (total + shrinkage))
    others = np.maximum(total[which] - weight, 0.0)
    return _EncodedTerm(
        _rounded(odds),
        _rounded(np.log1p(total)),
        best,
        _rounded(np.log1p(others)),
        float(_rounded(_log_odds(prior))),
    )


def _rounded(values: Float) -> Float:
    """Return values as a model file has them."""
    return values.astype(np.float32).astype(np.float64)


def _log_odds(p: Any) -> Any:
    p = np.clip(p, 1.0 / _MOST_ODDS, 1.0 - 1.0 / _MOST_ODDS)
    return np.log(p / (1.0 - p))


def fit_with_pairs(
    codes: Ints,
    sizes: Ints,
    positive: NDArray[np.bool_],
    weight: Float,
    terms: Sequence[Sequence[int]],
    pairs: int,
    seed: int,
) -> tuple[TargetEncoding, Float]:
    """Fit an encoding to terms and to the most useful ``pairs`` of them."""

    def fit(terms: Sequence[Sequence[int]]) -> tuple[TargetEncoding, Float]:
        rng = np.random.RandomState(seed)
        return TargetEncoding.fit(codes, sizes, positive, weight, terms, rng)

    encoding, own = fit(terms)
    if not pairs or len(terms) < 2:
        return encoding, own
    singles = own[:, : len(terms)] - encoding.defaults
    found = _useful_pairs(codes, sizes, positive, weight, terms, singles, seed)
    return fit([*terms, *found[:pairs]])


def _useful_pairs(
    coded: Ints,
    sizes: Ints,
    positive: NDArray[np.bool_],
    weight: Float,
    terms: Sequence[Sequence[int]],
    singles: Float,
    seed: int,
) -> list[list[int]]:
    """Return pairs that rank training rows better than their columns do, best first.

    ``singles`` are the cross-fitted log-odds of the terms, relative to their mean.
    """
    alone = [auc(positive, column) for column in singles.T]
    order = np.argsort(np.negative(alone), kind="stable")[:_MOST_ENCODED]
    places = list(combinations(sorted(order.tolist()), 2))
    pairs = [[*terms[i], *terms[j]] for i, j in places]
    if not pairs:
        return []
    rng = np.random.RandomState(seed)
    encoding, own = TargetEncoding.fit(coded, sizes, positive, weight, pairs, rng)
    gains = []
    for k, (i, j) in enumerate(places):
        sum_of_both = singles[:, i] + singles[:, j]
        together = sum_of_both + own[:, k] - encoding.defaults[k]
        gains.append(auc(positive, together) - auc(positive, sum_of_both))
    best = np.argsort(np.negative(gains), kind="stable").tolist()
    return [pairs[k] for k in best if gains[k] > 0.0]
