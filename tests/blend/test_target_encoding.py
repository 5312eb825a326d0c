"""Target encoding, compared with loops over rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from aucmax.blend import target_encoding
from aucmax.blend.target_encoding import TargetEncoding, fit_with_pairs
from aucmax.metrics import auc

RNG = np.random.default_rng(0)
N = 200
SIZES = np.array([6, 90, 3])  # of the second, some codes are in a single row
CODES = np.column_stack([RNG.integers(0, size, N) for size in SIZES])
POSITIVE = RNG.random(N) < 0.3 + 0.3 * (CODES[:, 0] % 2)
WEIGHT = RNG.integers(1, 4, N).astype(float)
TERMS = [[0], [1], [0, 2]]


def fitted(weight=WEIGHT, terms=TERMS, seed=3):
    rng = np.random.RandomState(seed)
    return TargetEncoding.fit(CODES, SIZES, POSITIVE, weight, terms, rng)


def log_odds(p):
    p = min(max(p, 1e-4), 1 - 1e-4)
    return np.log(p / (1 - p))


def others(term, i, inner):
    """Return the rows of the other inner folds with the same codes as row ``i``."""
    return [
        j
        for j in range(N)
        if inner[j] != inner[i] and (CODES[j, term] == CODES[i, term]).all()
    ]


def share_of_new(term, inner):
    """Return the share of positives in rows with codes new to the other inner folds."""
    new = [i for i in range(N) if not others(term, i, inner)]
    hits = sum(WEIGHT[i] for i in new if POSITIVE[i])
    share = WEIGHT[POSITIVE].sum() / WEIGHT.sum()
    return (hits + 20.0 * share) / (sum(WEIGHT[i] for i in new) + 20.0)


def slow(term, shrinkage, inner, prior):
    """Return the log-odds of each row, out of the rows of the other inner folds."""
    odds = []
    for i in range(N):
        same = others(term, i, inner)
        hits = sum(WEIGHT[j] for j in same if POSITIVE[j])
        rows = sum(WEIGHT[j] for j in same)
        odds.append(log_odds((hits + shrinkage * prior) / (rows + shrinkage)))
    return np.array(odds)


def test_training_rows_are_encoded_by_other_rows():
    encoding, own = fitted()
    rng = np.random.RandomState(3)
    inner = target_encoding._inner_folds(POSITIVE, rng)
    for k, term in enumerate(TERMS):
        prior = share_of_new(term, inner)
        assert encoding.defaults[k] == pytest.approx(log_odds(prior))
        candidates = [slow(term, a, inner, prior) for a in (1.0, 4.0, 16.0, 64.0)]
        losses = [
            WEIGHT @ np.logaddexp(0.0, np.where(POSITIVE, -odds, odds))
            for odds in candidates
        ]
        assert_allclose(own[:, k], candidates[int(np.argmin(losses))], rtol=1e-9)


def test_other_rows_are_encoded_by_all_training_rows():
    encoding, own = fitted()
    found = encoding.transform(CODES, SIZES)
    inner = target_encoding._inner_folds(POSITIVE, np.random.RandomState(3))
    for k, term in enumerate(TERMS):
        prior = share_of_new(term, inner)
        rows = np.array(
            [WEIGHT[(CODES[:, term] == c).all(axis=1)].sum() for c in CODES[:, term]]
        )
        hits = np.array(
            [
                WEIGHT[POSITIVE & (CODES[:, term] == c).all(axis=1)].sum()
                for c in CODES[:, term]
            ]
        )
        options = [
            [log_odds(p) for p in (hits + a * prior) / (rows + a)]
            for a in (1.0, 4.0, 16.0, 64.0)
        ]
        nearest = min(np.abs(found[:, k] - one).max() for one in options)
        assert nearest < 1e-5
        assert_allclose(found[:, len(TERMS) + k], np.log1p(rows), rtol=1e-6)
        assert_allclose(own[:, len(TERMS) + k], np.log1p(rows - WEIGHT), rtol=1e-6)


def test_unknown_values_get_the_log_odds_of_new_values_and_the_fewest_rows():
    alone, own = TargetEncoding.fit(
        CODES[:, :1] % 3, SIZES[:1], POSITIVE, WEIGHT, [[0]], np.random.RandomState(0)
    )
    found = alone.transform(np.array([[5]]), SIZES[:1])
    assert_allclose(found, [[alone.defaults[0], own[:, 1].min()]])
    assert own[:, 1].min() > 1.0  # no category is rare


def test_stored_arrays_give_the_same_encoding():
    encoding, _ = fitted()
    again = TargetEncoding.restored(encoding.arrays(), SIZES)
    assert_array_equal(again.transform(CODES, SIZES), encoding.transform(CODES, SIZES))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", [0.0, 1.0, 0.0, 3.0]),
        ("ends", [1.0, 2.0, 3.0]),
        ("ends", [2.0, 1.0, 4.0]),
        ("key_ends", [1.0, 2.0, 10**6]),
        ("odds", [np.nan]),
        ("defaults", [0.0, 1.0]),
    ],
)
def test_invalid_arrays_are_refused(name, value):
    arrays = {**fitted()[0].arrays(), name: np.array(value)}
    with pytest.raises(ValueError, match=r"out of range|is invalid"):
        TargetEncoding.restored(arrays, SIZES)


def test_a_useful_pair_is_found():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 8, (3000, 4))
    sizes = np.full(4, 8)
    positive = (codes[:, 1] + codes[:, 3]) % 2 == (rng.random(3000) < 0.1)
    terms = [[0], [1], [2], [3]]
    encoding, _ = fit_with_pairs(codes, sizes, positive, np.ones(3000), terms, 1, 0)
    assert encoding.terms[4:] == [[1, 3]]
    none, _ = fit_with_pairs(codes, sizes, positive, np.ones(3000), terms, 0, 0)
    assert none.terms == terms


def test_a_row_tells_of_the_other_row_of_its_pair():
    """Rows come in pairs with the same label; one of each is known."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(500), 2)
    label = np.repeat(rng.random(500) < 0.4, 2)
    known = rng.random(1000) < 0.6
    encoding, own = TargetEncoding.fit(
        code[known, np.newaxis],
        np.array([500]),
        label[known],
        np.ones(np.count_nonzero(known)),
        [[0]],
        np.random.RandomState(0),
    )
    found = encoding.transform(code[:, np.newaxis], np.array([500]))
    partner_known = np.isin(code, code[known]) & ~known
    assert auc(label[partner_known], found[partner_known, 0]) == 1.0
    # Rows are told by their partner alone: neither odds nor counts tell of themselves.
    single = np.bincount(code[known], minlength=500)[code[known]] == 1
    assert np.unique(own[single], axis=0).shape == (1, 2)
    assert own[single][0, 1] == 0.0
