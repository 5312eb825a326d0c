"""A map and a learner in one, against doing the two by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import PolynomialFeatures

import aucmax
from aucmax import (
    BAM,
    OAM,
    PSAM,
    SPAM,
    Chain,
    KMeansNystroem,
    LeastSquaresAUC,
    RandomFourier,
)
from aucmax.kernel import chain
from aucmax.storage import model_file


def moons(n=600, seed=0):
    return make_moons(n, noise=0.3, random_state=seed)


def by_hand(mapper, learner, X, y, method="fit"):
    """Return scores of the learner on features of the map."""
    mapper = clone(mapper).fit(X)
    F = mapper.transform(X).astype(np.float32)
    learner = getattr(clone(learner), method)(F, y)
    return learner.decision_function(mapper.transform(X))


@pytest.mark.parametrize("mapper", [KMeansNystroem(30), RandomFourier(30)], ids=str)
def test_fit_is_map_then_learner(mapper):
    X, y = moons()
    mapper.set_params(random_state=0)
    model = Chain(mapper, BAM(1e-3)).fit(X, y)
    assert_allclose(
        model.decision_function(X), by_hand(mapper, BAM(1e-3), X, y), atol=1e-3
    )
    assert model.score(X, y) > BAM().fit(X, y).score(X, y) + 0.02


def test_a_stream_is_the_map_of_its_first_rows_then_the_learner():
    X, y = moons(900)
    mapper, learner = KMeansNystroem(30, random_state=0), SPAM(1e-4)
    model = Chain(mapper, learner, first_rows=200)
    for start in range(0, 900, 70):
        model.partial_fit(X[start : start + 70], y[start : start + 70], classes=[0, 1])
    settled = clone(mapper).fit(X[:200])
    F = settled.features(X, np.float32)
    expected = clone(learner).partial_fit(F, y)
    assert_array_equal(model.learner_.coef_, expected.coef_)
    assert_array_equal(model.map_.landmarks_, settled.landmarks_)


def test_scores_before_the_map_is_settled():
    X, y = moons()
    make = lambda: Chain(KMeansNystroem(20, random_state=0), SPAM(), first_rows=500)  # noqa: E731
    model = make().partial_fit(X[:100], y[:100])
    early = model.decision_function(X)
    ended = Chain(KMeansNystroem(20, random_state=0), SPAM(), first_rows=100)
    assert_array_equal(early, ended.partial_fit(X[:100], y[:100]).decision_function(X))
    model.partial_fit(X[100:], y[100:])  # to have looked changes nothing
    assert_array_equal(
        model.decision_function(X), make().partial_fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "CSR"])
def test_a_stream_that_is_saved_before_the_map_is_settled(layout, tmp_path):
    X, y = moons()
    X = layout(X)
    make = lambda: Chain(KMeansNystroem(20, random_state=0), PSAM(random_state=0))  # noqa: E731
    model = make().partial_fit(X[:150], y[:150])
    model.save(tmp_path / "model")
    again = aucmax.load(tmp_path / "model")
    assert_array_equal(again.decision_function(X), model.decision_function(X))
    for one in (model, again):
        for _ in range(3):
            one.partial_fit(X[150:], y[150:])
    assert not hasattr(again, "held_")
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_first_rows_by_default():
    assert Chain(KMeansNystroem(20), SPAM())._wanted_rows() == 1000
    assert Chain(KMeansNystroem(1600), SPAM())._wanted_rows() == 6400
    assert Chain(KMeansNystroem(20), SPAM(), first_rows=7)._wanted_rows() == 7


@pytest.mark.parametrize("learner", [PSAM(), SPAM(), OAM(), LeastSquaresAUC()], ids=str)
def test_features_that_do_not_fit_in_memory(learner, monkeypatch):
    X, y = moons(1500)
    model = Chain(KMeansNystroem(30, random_state=0), learner)
    if "random_state" in learner.get_params():
        model.set_params(learner__random_state=0)
    held = clone(model).fit(X, y)
    monkeypatch.setattr(chain, "_PART", 256)
    parts = clone(model).set_params(memory=0).fit(X, y)
    assert parts.n_iter_ == held.n_iter_
    X, y = moons(3000, seed=1)
    assert parts.score(X, y) == pytest.approx(held.score(X, y), abs=0.003)


def test_features_that_do_not_fit_at_all(monkeypatch):
    X, y = moons()
    monkeypatch.setattr(chain, "_MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"BAM needs all features at once, .* PSAM"):
        Chain(KMeansNystroem(30), BAM()).fit(X, y)


def test_the_penalty_of_features_of_one_unit():
    X, y = moons(2000)
    for learner, share in ((BAM(), 0.5), (PSAM(max_iter=1), 0.5**1.25)):
        auto = Chain(KMeansNystroem(20), learner).fit(X, y)
        assert auto.learner_.l2 == pytest.approx(0.3 * (1 / 1000 + 1 / 1000) * share)
        assert auto.learner.l2 == "auto"
    few = Chain(KMeansNystroem(20), BAM()).fit(X[:400], y[:400]).learner_.l2
    assert few == pytest.approx(0.3 * (1 / y[:400].sum() + 1 / (1 - y[:400]).sum()))
    assert Chain(KMeansNystroem(20), BAM(0.5)).fit(X, y).learner_.l2 == 0.5
    stream = Chain(KMeansNystroem(20), SPAM(), first_rows=50).partial_fit(X, y)
    assert stream.learner_.l2 == 1e-5


def test_any_transformer_will_do_but_cannot_be_saved(tmp_path):
    X, y = moons()
    model = Chain(PolynomialFeatures(3), BAM()).fit(X, y)
    assert model.score(X, y) > 0.95
    stream = Chain(PolynomialFeatures(3), SPAM(), first_rows=100).partial_fit(X, y)
    assert stream.score(X, y) > 0.94
    with pytest.raises(TypeError, match="PolynomialFeatures is not an estimator of"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_learner_that_is_none():
    with pytest.raises(ValueError, match="'learner' parameter of Chain"):
        Chain(KMeansNystroem(5), LogisticRegression()).fit(*moons(50))
    assert not hasattr(Chain(KMeansNystroem(5), BAM()), "partial_fit")


def test_a_wild_value_counts_as_the_outermost_seen():
    X, y = moons()
    model = Chain(KMeansNystroem(30, random_state=0), BAM()).fit(X, y)
    far = X[:5].copy()
    far[:, 0] = 1e12
    edge = X[:5].copy()
    edge[:, 0] = X[:, 0].max()
    assert_allclose(model.decision_function(far), model.decision_function(edge))


def test_a_feature_that_wakes_up_leaves_the_others_their_say():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2))
    y = (X[:, 1] + rng.standard_normal(4000) > 0.6).astype(int)
    asleep = X.copy()
    asleep[:1000, 0] *= 1e-6
    scores = [
        Chain(KMeansNystroem(30, random_state=0), SPAM())
        .partial_fit(rows[:3000], y[:3000])
        .score(X[3000:], y[3000:])
        for rows in (X, asleep)
    ]
    assert scores[1] > scores[0] - 0.02


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("map.result.landmarks_", np.zeros((3, 4)), "does not match"),
        ("map.result.unit_", np.full(2, np.inf), "not finite"),
        ("learner.coef", np.zeros((1, 5)), "coef"),
    ],
)
def test_parts_of_a_file_that_do_not_go_together(name, value, text, tmp_path):
    path = tmp_path / "model"
    Chain(KMeansNystroem(9, random_state=0), BAM()).fit(*moons(80)).save(path)
    header, tensors = model_file.read(path)
    assert name in tensors
    model_file.write(path, header, {**tensors, name: value})
    with pytest.raises(ValueError, match=text):
        aucmax.load(path)


def test_held_rows_of_a_file_that_do_not_go_together(tmp_path):
    path = tmp_path / "model"
    X, y = moons(80)
    Chain(KMeansNystroem(9), SPAM()).partial_fit(sparse.csr_array(X), y).save(path)
    header, tensors = model_file.read(path)
    for name, value in (
        ("own.indices", 9.0),
        ("own.indptr", 1e9),
        ("own.data", np.nan),
    ):
        broken = {**tensors, name: tensors[name] * 0 + value}
        model_file.write(path, header, broken)
        with pytest.raises(ValueError, match="damaged"):
            aucmax.load(path)
