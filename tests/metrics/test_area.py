"""auc: all pairs and scikit-learn as oracles, and what must not change it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score

from aucmax.metrics import auc
from aucmax.metrics._ranking import mid_ranks

patient = settings(deadline=None)  # the first call compiles


def over_all_pairs(y, score, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    won = total = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            pair = weight[i] * weight[j]
            won += pair * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
            total += pair
    return won / total


@st.composite
def rows(draw, max_size=40):
    """Draw labels of both classes and scores with many ties, infinite ones too."""
    n = draw(st.integers(2, max_size))
    y = draw(hnp.arrays(np.int64, n, elements=st.integers(0, 1)))
    y[draw(st.permutations(range(n)))[:2]] = [0, 1]
    levels = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.1, 0.2, 1.0, np.inf])
    return y, draw(hnp.arrays(np.float64, n, elements=levels))


@patient
@given(rows())
def test_is_the_mean_over_all_pairs(data):
    y, score = data
    assert auc(y, score) == over_all_pairs(y, score)


@pytest.mark.parametrize("n_values", [3, 50, 10**9])
@pytest.mark.parametrize("share", [0.002, 0.1, 0.5, 0.97])
def test_is_scikit_learns(n_values, share):
    rng = np.random.default_rng(0)
    y = (rng.random(5000) < share).astype(int)
    score = rng.integers(0, n_values, 5000) + (n_values // 3) * y
    weight = rng.random(5000)
    assert auc(y, score) == pytest.approx(roc_auc_score(y, score), rel=1e-12)
    assert auc(y, score, sample_weight=weight) == pytest.approx(
        roc_auc_score(y, score, sample_weight=weight), rel=1e-11
    )


@patient
@given(rows(), st.data())
def test_weights_multiply_pairs(data, more):
    y, score = data
    weight = more.draw(hnp.arrays(np.float64, y.size, elements=st.floats(0.01, 10.0)))
    got = auc(y, score, sample_weight=weight)
    assert got == pytest.approx(over_all_pairs(y, score, weight), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e170, 1e300])
def test_the_scale_of_weights_does_not_matter(scale):
    y, score = np.array([0, 0, 1, 1, 0]), np.array([1.0, 2.0, 2.0, 3.0, 4.0])
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    got = auc(y, score, sample_weight=weight * scale)
    assert got == pytest.approx(over_all_pairs(y, score, weight), rel=1e-12)


@patient
@given(rows(), st.data())
def test_weights_are_repetitions(data, more):
    y, score = data
    times = more.draw(hnp.arrays(np.int64, y.size, elements=st.integers(0, 3)))
    times[np.argmax(y == 0)] += 1
    times[np.argmax(y == 1)] += 1
    repeated = auc(np.repeat(y, times), np.repeat(score, times))
    assert auc(y, score, sample_weight=times) == pytest.approx(repeated, abs=1e-15)


@patient
@given(rows())
def test_other_labels_or_other_scores_turn_it_round(data):
    y, score = data
    turned = pytest.approx(1.0 - auc(y, score), abs=1e-15)
    assert auc(1 - y, score) == turned
    assert auc(y, -score) == turned
    assert auc(y, score, pos_label=0) == turned


@patient
@given(rows(), st.randoms(use_true_random=False))
def test_only_the_order_of_scores_matters(data, random):
    y, score = data
    order = random.sample(range(y.size), y.size)
    assert auc(y[order], score[order]) == auc(y, score)
    assert auc(y, np.arctan(score) * 3.0 + 7.0) == auc(y, score)


def test_two_rows():
    assert auc([0, 1], [1.0, 2.0]) == 1.0
    assert auc([1, 0], [1.0, 2.0]) == 0.0
    assert auc([0, 1], [2.0, 2.0]) == 0.5
    assert auc([0, 1], [-np.inf, np.inf]) == 1.0


def test_the_result_is_a_plain_float():
    assert type(auc([0, 1], [1, 2])) is float
    assert type(auc([0, 1], [1, 2], sample_weight=[1, 2])) is float


def test_float32_is_ranked_as_it_is():
    rng = np.random.default_rng(2)
    y = np.arange(3000) % 2
    fine = 1.0 + rng.random(3000) * 1e-5  # about a hundred values in float32
    coarse = fine.astype(np.float32)
    assert auc(y, coarse) == auc(y, coarse.astype(np.float64))
    assert auc(y, coarse) != auc(y, fine)


def test_any_array_gives_the_same_and_needs_no_further_compilation():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 500)
    score = rng.integers(0, 100, 500) / 128.0  # exact in half precision too
    expected = over_all_pairs(y, score)
    read_only = score.copy()
    read_only.flags.writeable = False
    strided = np.repeat(score, 3)[::3]
    fortran = np.asfortranarray(np.column_stack([score, score]))[0:, 1]
    backwards = score[::-1].copy()[::-1]
    swapped = score.astype(score.dtype.newbyteorder())
    kinds = [read_only, strided, fortran, backwards, swapped, score.tolist()]
    kinds += [score.astype(t) for t in (np.float16, np.float32, np.longdouble, object)]
    for kind in kinds:
        before = kind.copy()
        assert auc(y, kind) == expected
        assert auc(y, kind, sample_weight=np.ones(500, np.float32)) == pytest.approx(
            expected, abs=1e-15
        )
        assert np.array_equal(before, kind)
    assert len(getattr(mid_ranks, "signatures", [])) <= 2
