"""Maps: their kernel, and what they promise of rows, units and threads."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from aucmax import KMeansNystroem, Projection, RandomFourier
from aucmax.kernel import maps, nystroem
from helpers.data import gaussian, scaled

KERNELS = [
    KMeansNystroem(20, random_state=0),
    KMeansNystroem(20, linear=True, random_state=0),
    RandomFourier(20, random_state=0),
    RandomFourier(20, kind="sincos", linear=True, random_state=0),
    RandomFourier(20, kernel="laplacian", random_state=0),
]
MAPS = [
    *KERNELS,
    *(Projection(3, kind=kind, random_state=0) for kind in ("select", "random", "pca")),
]
kernels = pytest.mark.parametrize("mapper", KERNELS, ids=str)
every = pytest.mark.parametrize("mapper", MAPS, ids=str)


def kernel(A, B, sigma):
    return np.exp(-cdist(A, B, "sqeuclidean") / (2 * sigma**2))


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.smoke
@parametrize_with_checks(MAPS)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_the_kernel_is_exact_on_the_landmarks():
    X, _ = gaussian(300, 4)
    mapper = KMeansNystroem(50, tol=1e-13, random_state=0).fit(X)
    landmarks = mapper.landmarks_.T / mapper.unit_ + mapper.centre_
    features = mapper.transform(landmarks)
    Z = (landmarks - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(features @ features.T, kernel(Z, Z, mapper.sigma_), atol=1e-6)


def test_all_rows_as_landmarks_give_the_kernel():
    X, _ = gaussian(80, 3)
    X = np.vstack([X, X[:10]])  # rows that are alike
    features = KMeansNystroem(None, tol=1e-13).fit_transform(X)
    Z = standardised(X)
    expected = kernel(Z, Z, np.sqrt(3.0))
    assert_allclose(features @ features.T, expected, atol=1e-8)


def test_more_landmarks_come_nearer():
    X, _ = gaussian(2000, 3)
    Z = standardised(X)
    expected = kernel(Z, Z, np.sqrt(3.0))
    errors = []
    for size in (5, 20, 80, 320):
        features = KMeansNystroem(size, random_state=0).fit_transform(X)
        errors.append(np.abs(features @ features.T - expected).mean())
    assert all(after < 0.5 * before for before, after in pairwise(errors))
    assert errors[-1] < 1e-4


@pytest.mark.parametrize("shape", ["gaussian", "laplacian"])
@pytest.mark.parametrize("kind", ["cos", "sincos"])
def test_fourier_features_have_the_kernel_as_their_mean(kind, shape):
    X, _ = gaussian(12, 3)
    Z = standardised(X)
    expected = kernel(Z, Z, np.sqrt(3.0))
    if shape == "laplacian":
        expected = np.exp(-np.abs(Z[:, None] - Z).sum(axis=2) / 3.0)
    draws, total, squares = 400, 0.0, 0.0
    for seed in range(draws):
        model = RandomFourier(10, kind=kind, kernel=shape, random_state=seed)
        features = model.fit_transform(X)
        product = features @ features.T
        total, squares = total + product, squares + product**2
    mean = total / draws
    error = np.sqrt((squares / draws - mean**2) / draws)
    assert np.all(np.abs(mean - expected) < 5 * error + 1e-12)


@pytest.mark.parametrize("kind", ["cos", "sincos"])
def test_fourier_features_converge(kind):
    """A product is a mean of D terms between -2 and 2, so its deviation is below 2/√D.

    A deviation of 5/√D has, by Hoeffding's inequality, a probability below 0.09; half
    of it, 2.5/√D, is what is left of the largest of many on the mean.
    """
    X, _ = gaussian(100, 3)
    Z = standardised(X)
    expected = kernel(Z, Z, np.sqrt(3.0))
    for size in (16, 256, 4096):
        features = RandomFourier(size, kind=kind, random_state=1).fit_transform(X)
        error = np.abs(features @ features.T - expected)
        assert error.mean() < 1.0 / np.sqrt(size)
        assert error.max() < 5.0 / np.sqrt(size)


def test_sigma_and_width():
    X, _ = gaussian(200, 5)
    auto = RandomFourier(4, random_state=0).fit(X)
    assert auto.sigma_ == pytest.approx(np.sqrt(5.0))
    half = RandomFourier(4, width=0.5, random_state=0).fit(X)
    given = RandomFourier(4, sigma=0.5 * np.sqrt(5.0), random_state=0).fit(X)
    assert_allclose(half.transform(X), given.transform(X), rtol=1e-12)
    laplacian = RandomFourier(4, kernel="laplacian", random_state=0).fit(X)
    assert laplacian.sigma_ == pytest.approx(5.0)
    given = RandomFourier(4, kernel="laplacian", sigma=5.0, random_state=0).fit(X)
    assert_allclose(laplacian.transform(X), given.transform(X), atol=1e-5)


def test_another_width_of_the_same_landmarks():
    X, _ = gaussian(200, 4)
    first = KMeansNystroem(20, tol=1e-13, random_state=0).fit(X)
    other = first.with_width(0.5)
    again = other.with_width(1.0)
    assert other.width == 0.5
    assert first.width == 1.0
    assert_allclose(again.landmarks_, first.landmarks_, rtol=1e-12)
    F, Z = other.transform(X[:30]), standardised(X)
    points = (first.landmarks_ * first.sigma_).T
    W = kernel(points, points, 0.5 * np.sqrt(4.0))
    K = kernel(Z[:30], points, 0.5 * np.sqrt(4.0))
    assert_allclose(F @ F.T, K @ np.linalg.pinv(W, rcond=1e-13) @ K.T, atol=1e-8)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_does_not_depend_on_the_others(mapper, dtype):
    for width in (5, 8, 20):  # BLAS has other kernels for sums of eight
        X, _ = gaussian(300, width)
        X = X.astype(dtype)
        mapper = clone(mapper).fit(X)
        whole = mapper.transform(X)
        assert whole.dtype == dtype
        cuts = [0, 1, 2, 66, 130, 131, 300]
        parts = [mapper.transform(X[a:b]) for a, b in pairwise(cuts)]
        assert_array_equal(np.vstack(parts), whole)


@every
def test_layouts_do_not_matter(mapper):
    X, _ = gaussian(150, 5)
    X *= np.random.default_rng(0).random(X.shape) < 0.5
    dense, csr = clone(mapper).fit(X), clone(mapper).fit(sparse.csr_array(X))
    # k-means may go another way if a mean has another last bit: compare one map.
    assert_allclose(
        dense.transform(sparse.csr_array(X)), dense.transform(X), rtol=1e-10, atol=1e-12
    )
    for name in mapper.stored:
        found = np.asarray(getattr(csr, name))
        assert found.shape == np.shape(getattr(dense, name))


@every
def test_threads_do_not_matter(mapper, monkeypatch):
    X, _ = gaussian(500, 5)
    monkeypatch.setattr(maps, "_TASK", 1)
    with threadpool_limits(1):
        one = clone(mapper).fit_transform(X)
    assert_array_equal(clone(mapper).fit_transform(X), one)


@kernels
def test_units_do_not_matter(mapper):
    X, _ = gaussian(200, 5)
    before = clone(mapper).fit_transform(X)
    after = clone(mapper).fit_transform(X * 2.0 ** np.array([-20, 0, 3, 20, 1]))
    assert_allclose(after, before, rtol=1e-10, atol=1e-12)


@kernels
def test_a_feature_far_from_zero(mapper):
    X, _ = gaussian(200, 3)
    before = clone(mapper).fit_transform(X)
    X[:, 1] += 2.0**22
    after = clone(mapper).fit_transform(X)  # maybe with eigenvectors of other signs
    assert_allclose(after @ after.T, before @ before.T, atol=1e-6)


@kernels
def test_a_constant_feature_does_not_count(mapper):
    X, _ = gaussian(200, 4)
    X[:, 2] = 1e6 / 3
    mapper = clone(mapper).fit(X)
    other = X.copy()
    other[:, 2] = -5.0
    assert_array_equal(mapper.transform(other), mapper.transform(X))


def test_words_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    X = sparse.random_array((50, 400), density=0.02, rng=rng, format="csr")
    mapper = KMeansNystroem(10, random_state=0).fit(X)
    assert_allclose(mapper.unit_ * mapper.sigma_, 1.0, rtol=1e-6)
    scaled_too = KMeansNystroem(10, scale="none", random_state=0).fit(X.toarray() * 3.0)
    assert_allclose(scaled_too.sigma_, 3.0 * mapper.sigma_)


@every
def test_scores_are_products_with_features(mapper):
    X, _ = scaled(150, 5)
    mapper = clone(mapper).fit(X)
    w = np.random.default_rng(0).standard_normal(mapper.n_features_out)
    assert_allclose(mapper.scores(X, w), mapper.transform(X) @ w, rtol=1e-9, atol=1e-9)


@every
def test_features_that_come_later_do_not_matter(mapper):
    X, _ = gaussian(150, 5)
    mapper = clone(mapper).fit(X)
    before = mapper.transform(X)
    mapper.resize(8)
    wider = np.hstack([X, np.ones((150, 3))])
    assert_array_equal(mapper.transform(wider), before)
    mapper.resize(5)
    assert_array_equal(mapper.transform(X), before)


@every
def test_features_that_never_occur_cost_nothing(mapper):
    X, _ = gaussian(150, 5)
    rows = sparse.csr_array(X)
    where = np.array([3, 5, 99, 10**5, 10**6])
    wide = sparse.csr_array(
        (rows.data, where[rows.indices], rows.indptr), (150, 10**6 + 1)
    )
    narrow = clone(mapper).fit(rows)
    found = clone(mapper).fit(wide)
    assert_array_equal(found.transform(wide), narrow.transform(rows))
    assert found.n_features_out == narrow.n_features_out


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    features = KMeansNystroem(100, random_state=0).fit_transform(X)
    assert features.shape[1] <= n
    assert_allclose(np.square(features).sum(axis=1), 1.0)


def test_copies_of_a_row_are_one_landmark():
    X = np.repeat(np.eye(3), 40, axis=0)
    mapper = KMeansNystroem(3, random_state=0).fit(X)
    assert mapper.landmarks_.shape[1] <= 3
    assert_allclose(np.square(mapper.transform(X)).sum(axis=1), 1.0)


def test_wide_rows_are_not_all_made_dense(monkeypatch):
    monkeypatch.setattr(nystroem, "_VALUES", 1 << 18)
    X = sparse.random_array((1000, 5000), density=0.02, rng=0, format="csr")
    tracemalloc.start()
    mapper = KMeansNystroem(20, random_state=0).fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert mapper.landmarks_.shape[1] == 20
    assert peak < 8 * X.shape[0] * X.shape[1]  # not even one dense copy


def test_names_of_features():
    X, _ = gaussian(50, 2)
    beside = RandomFourier(2, linear=True).fit(X).get_feature_names_out(["a", "b"])
    assert beside.tolist() == ["a", "b", "randomfourier0", "randomfourier1"]
    assert len(KMeansNystroem(5).fit(X).get_feature_names_out()) == 5


def test_projections():
    X, _ = gaussian(60, 8)
    chosen = Projection(3, kind="select", random_state=0).fit(X)
    columns = chosen.columns_
    assert len(set(columns)) == 3
    assert_array_equal(chosen.transform(X), X[:, columns])
    drawn = Projection(3, random_state=0).fit(X)
    assert_allclose(drawn.transform(X), X @ drawn.directions_, rtol=1e-12)
    found = Projection(3, kind="pca", random_state=0).fit_transform(X)
    exact = TruncatedSVD(3, algorithm="arpack", random_state=0).fit_transform(X)
    assert_allclose(np.abs(found), np.abs(exact), rtol=1e-6)
    assert_array_equal(Projection(8, kind="random").fit_transform(X), X)


def test_random_projections_keep_distances_on_the_mean():
    X, _ = gaussian(20, 50)
    ratios = [
        cdist(F, F)[np.triu_indices(20, 1)] / cdist(X, X)[np.triu_indices(20, 1)]
        for F in (Projection(40, random_state=k).fit_transform(X) for k in range(50))
    ]
    assert np.mean(np.square(ratios)) == pytest.approx(1.0, abs=0.03)
