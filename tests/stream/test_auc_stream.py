"""AUCStream: members, blend, calibration, drift, nonlinear members, files."""

import pickle
import threading
import warnings
from operator import attrgetter

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import aucmax
from aucmax import OAM, SPAM, AUCStream
from aucmax.online.engine.feature_table import NZ, SQ, SUM
from aucmax.stream.blocks import block_length
from aucmax.stream.members import Member, limit_values
from aucmax.stream.race import Race
from aucmax.stream.serving import ServedScores
from aucmax.stream.stream_state import StreamState
from helpers.data import gaussian
from helpers.states import dump

PLAIN = "OAM(C=5.0, average=False, buffer_size=10, precondition=False)"
LEARNERS = {
    "SPAM()": SPAM(),
    "OAM(C=2.0, buffer_size=25)": OAM(2.0, buffer_size=25),
    PLAIN: OAM(5.0, average=False, buffer_size=10, precondition=False),
    "OAM(C=6.0)": OAM(6.0),
    "OAM(C=60.0)": OAM(60.0),
}


def stream(n, d=6, share=0.2, seed=0, flip=False):
    """Return rows in random order; ``flip`` inverts the effect of the features."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    w = np.linspace(1.0, 0.0, d) * (-1.0 if flip else 1.0)
    return rng.normal(size=(n, d)) + 0.7 * np.outer(y, w), y


def streamed(X, y, size=500, nonlinear=False, **parameters):
    model = AUCStream(nonlinear=nonlinear, **parameters)
    for start in range(0, len(y), size):
        chunk = slice(start, start + size)
        model.partial_fit(X[chunk], y[chunk], classes=[False, True])
    return model


def by_hand(X, y):
    """Return the members trained separately, and their mean AUC over blocks."""
    members = {name: clone(learner) for name, learner in LEARNERS.items()}
    start, total, sums = 0, 0.0, dict.fromkeys(members, 0.0)
    while start < len(y):
        some = slice(start, start + block_length(start, None, X.shape[1]))
        whole = some.stop <= len(y)
        rows, positive = X[some], y[some]
        if start and whole and 0 < positive.sum() < len(positive):
            pos, neg = positive.sum(), (~positive).sum()
            u = pos * neg / (pos + neg) * some.stop**2
            for name, member in members.items():
                area = roc_auc_score(positive, member.decision_function(rows))
                sums[name] += u * area
            total += u
        elif whole and not start:  # all scores are zero
            u = positive.sum() * (~positive).sum() / len(positive) * some.stop**2
            sums = dict.fromkeys(members, 0.5 * u)
            total = u
        for member in members.values():
            member.partial_fit(rows, positive, classes=[False, True])
        start = some.stop
    return members, {name: value / total for name, value in sums.items()}


def test_members_equal_separate_learners_and_are_evaluated_before_learning():
    X, y = stream(3000)
    model = streamed(X, y)
    members, means = by_hand(X, y)
    assert model.members_.keys() == members.keys()
    for name, member in members.items():
        assert_array_equal(model.members_[name].coef_, member.coef_)
    for line in model.leaderboard_[1:]:
        assert line.auc == pytest.approx(means[line.member], abs=1e-12)
        assert line.rows == 2944  # without the unfinished block
        assert 0.0 < line.se < 0.05
        assert line.running
    best = max(means.values())
    assert [line.behind for line in model.leaderboard_[1:]] == pytest.approx(
        sorted(best - mean for mean in means.values())
    )
    blend = model.leaderboard_[0]
    assert (blend.member, blend.rows, blend.weight) == ("blend", 2944, 1.0)
    assert blend.behind == pytest.approx(best - blend.auc)
    assert abs(blend.behind) < 0.01


def test_the_score_is_the_blend_of_the_members():
    X, y = stream(3000)
    model = streamed(X, y)
    scores = np.array([m.decision_function(X) for m in model.members_.values()])
    served = model._served
    expected = (served.weights / served.scale) @ scores
    slope, offset = served.calibration()
    assert_allclose(model.decision_function(X), slope * expected + offset, rtol=1e-9)
    assert_allclose(model.coef_ @ X.T + model.intercept_, [model.decision_function(X)])
    weight = {line.member: line.weight for line in model.leaderboard_}
    assert_allclose(served.weights, [weight[name] for name in model.members_])


def served(X, y, **parameters):
    """Return the score of each row by the model at the start of its block."""
    half_life = parameters.get("half_life")
    parameters.setdefault("nonlinear", False)
    model, scores, start = AUCStream(**parameters), [], 0
    while (stop := start + block_length(start, half_life, X.shape[1])) <= len(y):
        if start:
            scores.append(model.decision_function(X[start:stop]))
        model.partial_fit(X[start:stop], y[start:stop], classes=[False, True])
        start = stop
    return np.concatenate(scores), y[len(y[:start]) - sum(map(len, scores)) : start]


@pytest.mark.parametrize("half_life", [None, 500])
def test_progressive_auc_is_that_of_the_served_scores(half_life):
    X, y = stream(3000)
    scores, positive = served(X, y, half_life=half_life)
    right, pairs = streamed(X, y, half_life=half_life).progressive_auc
    assert pairs == positive.sum() * (~positive).sum()
    assert right / pairs == pytest.approx(roc_auc_score(positive, scores), abs=2e-4)


def bursts(n=6000, seed=3):
    """Return rows of which 2 % are outliers, with positives in bursts."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < np.repeat(rng.choice([0.002, 0.15], n // 200), 200)
    X = rng.normal(size=(n, 6)) * np.where(rng.random((n, 1)) < 0.02, 20.0, 1.0)
    return X + 2.0 * np.outer(y, [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]), y


def test_scores_of_different_times_are_on_one_scale():
    scores, y = (part[1000:] for part in served(*bursts()))
    windows = [slice(i, i + 200) for i in range(0, len(y), 200) if y[i : i + 200].any()]
    areas = [roc_auc_score(y[some], scores[some]) for some in windows]
    within = np.average(areas, weights=[y[some].sum() for some in windows])
    assert roc_auc_score(y, scores) > within - 0.03
    expected = 1.0 / (1.0 + np.exp(-scores))
    assert expected.sum() == pytest.approx(y.sum(), rel=0.3)


def test_drift_is_found_and_half_life_suggested():
    X, y = stream(9000)
    turned, label = stream(9000, seed=1)
    turned = turned[:, ::-1]  # other features matter
    both = np.vstack([X, turned]), np.concatenate([y, label])
    with pytest.warns(UserWarning, match="half_life=1000 rows"):
        changed = streamed(*both)
    assert changed.drift_.found
    assert changed.drift_.gain > 3.0 * changed.drift_.se > 0.0
    order = np.random.default_rng(0).permutation(18_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixed = streamed(both[0][order], both[1][order])
        forgetful = streamed(*both, half_life=1000)
    assert not mixed.drift_.found
    assert forgetful.score(turned, label) > changed.score(turned, label)


@pytest.mark.parametrize("value", [1e6, 3.4e38])
@pytest.mark.parametrize("column", [0, 5], ids=["informative", "noise"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_one_extreme_value_does_not_matter(value, column, layout):
    X, y = stream(3000)
    area = streamed(X, y).score(X, y)
    wild = X.copy()
    wild[1000, column] = value
    before = wild.copy()
    rows = layout(wild)
    model = streamed(rows, y)
    assert model.score(X, y) > area - 0.01
    assert_array_equal(wild, before)
    one = streamed(rows, y, 177)
    assert_array_equal(one.coef_, model.coef_)
    for nonlinear in (False, True):
        model = AUCStream(nonlinear=nonlinear, random_state=0).fit(rows, y)
        assert model.score(X, y) > area - 0.01


def test_a_feature_that_becomes_larger_is_limited_in_few_rows():
    X = np.ones((300, 2))
    X[200:, 0] = 1e7
    largest = np.zeros(2)
    parts = [
        limit_values(part, largest, 100.0 * k) for k, part in enumerate(np.split(X, 3))
    ]
    found = np.vstack(parts)
    assert_array_equal(found[:, 1], 1.0)
    assert_array_equal(found[:200, 0], 1.0)
    assert_array_equal(found[200:, 0], [1e2, 1e4, 1e6, *[1e7] * 97])
    assert_array_equal(largest, [1e7, 1.0])
    rows = np.ones((10, 1))
    assert limit_values(rows, np.ones(1), 1000.0) is rows


def test_probabilities_are_calibrated():
    X, y = stream(20_000, share=0.1)
    model = streamed(X[:15_000], y[:15_000])
    rival = LogisticRegression().fit(X[:15_000], y[:15_000])
    losses = [
        log_loss(y[15_000:], m.predict_proba(X[15_000:])[:, 1]) for m in (model, rival)
    ]
    assert losses[0] < losses[1] + 0.003
    proba = model.predict_proba(X)
    assert proba.shape == (20_000, 2)
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), proba[:, 1] > 0.5)


def test_blocks_grow_with_the_rows_within_bounds():
    rows = (0, 31, 2047, 2048, 65_536, 1 << 20, 10**9)
    lengths = [32, 32, 64, 128, 4096, 65_536, 65_536]
    assert [block_length(n, None, 10) for n in rows] == lengths
    assert [block_length(n, 5000.0, 10) for n in rows] == [
        32,
        32,
        64,
        128,
        256,
        256,
        256,
    ]
    assert [block_length(n, None, 100_000) for n in rows] == [
        97,
        97,
        97,
        128,
        *lengths[4:],
    ]


def test_members_that_cannot_win_are_eliminated():
    X, y = stream(80_000, d=3)
    model = streamed(X, y, 5000, tolerance=0.01)
    running = [line for line in model.leaderboard_[1:] if line.running]
    assert [line.member for line in running] == ["SPAM()"]  # the cheapest of equals
    assert running[0].weight == 1.0
    assert list(model.members_) == ["SPAM()"]
    alone = SPAM().partial_fit(X, y)
    assert_array_equal(model.members_["SPAM()"].coef_, alone.coef_)
    out = model.leaderboard_[-1]
    assert (out.running, out.weight) == (False, 0.0)
    assert 4096 <= out.rows < 80_000


def test_a_race_with_eliminated_members_is_restored(tmp_path):
    X, y = stream(40_000, d=3)
    model = streamed(X[:30_000], y[:30_000], 5000, tolerance=0.01)
    assert len(model.members_) < 4
    model.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    assert twin.leaderboard_ == model.leaderboard_
    for one in (model, twin):
        one.partial_fit(X[30_000:], y[30_000:])
    assert_array_equal(model.coef_, twin.coef_)
    assert twin.leaderboard_ == model.leaderboard_


def test_fading_multiplies_the_weights_of_past_rows():
    """Class moments equal those of weighted rows; the average is kept."""
    X, y = stream(400)
    for learner in (SPAM(), OAM()):
        learner.partial_fit(X[:300], y[:300])
        means = learner.coef_.copy()
        learner.fade(0.25)
        assert_allclose(learner._weights(learner.state_)[0], means[0], rtol=1e-12)
        learner.partial_fit(X[300:], y[300:])
        weight = np.where(np.arange(400) < 300, 0.25, 1.0)
        table = learner.state_.table
        for side, rows in enumerate((y, ~y)):
            assert table.n[side] == pytest.approx(weight[rows].sum())
            assert_allclose(table.feat[SUM + side], weight[rows] @ X[rows])
            about = (X[rows] - table.ref) ** 2
            assert_allclose(table.feat[SQ + side], weight[rows] @ about, rtol=1e-6)
        assert_allclose(table.feat[NZ], weight.sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("half_life", [1e-6, 0.1, 3.0, 50.0])
def test_a_short_half_life_and_a_class_that_is_absent_for_long(half_life):
    """Rows far beyond a thousand half-lives do not make sums underflow."""
    X, y = stream(3000)
    model = streamed(X, y, half_life=half_life, nonlinear=False)
    assert model.score(X, y) > 0.6
    absent = np.resize(X[~y], (60_000, X.shape[1])), np.zeros(60_000, bool)
    for rows, labels in (absent, (X, y)):
        model.partial_fit(rows, labels)
        assert np.isfinite(model.coef_).all()
        p = model.predict_proba(X)[:, 1]
        assert ((p >= 0.0) & (p <= 1.0)).all()
    assert model.score(X, y) > 0.6


def test_fading_keeps_the_means_of_a_class_without_new_rows():
    X, y = stream(400)
    learner = SPAM().partial_fit(X, y)
    expected = learner.state_.table.feat[SUM] / learner.state_.table.n[0]
    for _ in range(40):
        learner.fade(1e-40)
    table = learner.state_.table
    assert (table.n > 0.0).all()
    assert_allclose(table.feat[SUM] / table.n[0], expected, rtol=1e-12)
    learner.partial_fit(X, y)
    assert np.isfinite(learner.coef_).all()


def test_a_half_life_follows_a_changing_stream():
    before, after, test = (
        stream(12_000, seed=1),
        stream(1000, seed=2, flip=True),
        stream(2000, seed=3, flip=True),
    )
    X, y = (np.concatenate(parts) for parts in zip(before, after, strict=True))
    faithful = streamed(X, y).score(*test)
    quick = streamed(X, y, half_life=500.0)
    fresh = streamed(*after).score(*test)
    assert quick.score(*test) > max(fresh - 0.02, faithful + 0.1)
    assert len(quick.members_) == 7
    assert quick.leaderboard_[1].auc > 0.6  # the race forgets, too


def test_a_half_life_costs_little_in_a_stationary_stream():
    X, y = stream(12_000)
    test = stream(4000, seed=9)
    assert streamed(X, y, half_life=3000.0).score(*test) > (
        streamed(X, y).score(*test) - 0.005
    )


@pytest.fixture(scope="module")
def circles():
    return make_circles(6000, noise=0.2, factor=0.5, random_state=0)


def test_trees_are_on_by_default(circles):
    X, y = circles
    model = AUCStream(random_state=0).partial_fit(X[:4000], y[:4000])
    assert streamed(X[:4000], y[:4000]).score(X[4000:], y[4000:]) < 0.6
    assert model.score(X[4000:], y[4000:]) > 0.9
    blend, leader, second = model.leaderboard_[:3]
    assert (blend.member, leader.member) == ("blend", "LightGBM")
    assert leader.weight > 0.9
    assert second.behind > 0.2
    assert leader.behind == 0.0
    linear = model._race.means().max() - blend.auc  # on the blocks of the blend
    assert blend.behind == pytest.approx(second.behind + linear)
    with pytest.raises(AttributeError, match="nonlinear member"):
        _ = model.coef_
    assert model.expression() is None


@pytest.mark.parametrize("rows", [300, 4000], ids=["before trees", "with trees"])
def test_nonlinear_streams_in_chunks_and_from_files(circles, rows, tmp_path):
    X, y = circles if rows > 300 else (sparse.csr_array(circles[0]), circles[1])
    one = streamed(X[:rows], y[:rows], nonlinear=True, random_state=0)
    other = streamed(X[:rows], y[:rows], 177, nonlinear=True, random_state=0)
    one.save(tmp_path / "model")
    twin = aucmax.load(tmp_path / "model")
    for model in (one, other, twin):
        model.partial_fit(X[rows : rows + 500], y[rows : rows + 500])
    for model in (other, twin):
        for key, array in dump(one)[1].items():
            assert_array_equal(array, dump(model)[1][key], err_msg=key)
    assert_array_equal(one.decision_function(X), twin.decision_function(X))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("_served.scale", np.zeros(5), "scales are not positive"),
        ("_served.scale", np.ones(3), "'unit' has shape"),
        ("_served.weights", np.array([np.inf, 0.0, 0.0, 0.0, 0.0]), "'mix' has"),
        ("_served.histogram", np.zeros((2, 3)), "'served' has shape"),
        ("_pending", [(np.zeros((6, 3)), np.zeros(3))], "unfinished block"),
        ("_served.class_weight", np.array([-1.0, 2.0, 1.0]), "weights are negative"),
        ("_largest", np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]), "negative values"),
        ("_served.class_weight", np.ones(3, np.int16), "'mass' has type int16, not fl"),
    ],
)
def test_an_inconsistent_file_is_refused(name, value, why, tmp_path):
    model = streamed(*stream(200))
    owner, _, attribute = name.rpartition(".")
    setattr(attrgetter(owner)(model) if owner else model, attribute, value)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=why):
        aucmax.load(tmp_path / "model")


def test_learners_of_a_file_must_be_those_of_the_race(tmp_path):
    model = streamed(*stream(200))
    first, second = model._all_members[:2]
    first.learner, second.learner = second.learner, first.learner
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="is OAM, expected SPAM"):
        aucmax.load(tmp_path / "model")


def test_the_blend_of_linear_members_is_linear():
    X, y = gaussian(300, 5)
    model = AUCStream().partial_fit(X, y)
    found = model.expression()
    assert_allclose(X @ found.weights + found.intercept, model.decision_function(X))


def test_a_member_that_diverges_is_eliminated(tmp_path):
    X, y = stream(3000, d=3)
    model = streamed(X[:600], y[:600])
    area = model.score(X, y)
    model._largest[:] = 1e8  # otherwise the next value would be limited
    model.partial_fit([[0.0, 0.0, -1e8]], [True])  # in a feature without information
    assert model.score(X, y) > area - 0.02
    model.save(tmp_path / "model")  # in the middle of a block
    for one in (model, aucmax.load(tmp_path / "model")):
        one.partial_fit(X[600:], y[600:])
        out = [line.member for line in one.leaderboard_ if not line.running]
        assert out == [PLAIN]
        assert one.score(X, y) > area - 0.02


def frozen(model):
    """Return all that a model knows."""
    return pickle.dumps(vars(model))


@pytest.mark.parametrize("nonlinear", [False, True])
def test_scoring_stores_nothing(nonlinear):
    X, y = stream(1500)
    model = AUCStream(nonlinear=nonlinear, random_state=0)
    start = 0
    for size in [1, 30, 1, 1, 31, 300, 11, 900, 1]:  # before, at and after block ends
        part = slice(start, start + size)
        model.partial_fit(X[part], y[part], classes=[False, True])
        before, start = frozen(model), start + size
        scores = model.decision_function(X)
        model.predict_proba(X[:1])
        model.blended_score()
        _ = model.intercept_
        assert frozen(model) == before
        assert_array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize("nonlinear", [False, True])
def test_scores_asked_for_at_any_moment_change_nothing(nonlinear, monkeypatch):
    X, y = stream(3000)
    expected = dump(streamed(X, y, size=70, nonlinear=nonlinear, random_state=0))
    model, scored = AUCStream(nonlinear=nonlinear, random_state=0), []

    def ask_in(kind, name):
        method = getattr(kind, name)

        def asked(*args):
            result = method(*args)
            if "_present" in vars(model):
                scored.append(model.decision_function(X[:5]))
            return result

        monkeypatch.setattr(kind, name, asked)

    for kind, names in {
        ServedScores: ["add_block", "add_classes", "set_weights", "_update_scale"],
        Member: ["start_block", "score_and_learn"],
        Race: ["add_block"],
        StreamState: ["_publish"],
    }.items():
        for name in names:
            ask_in(kind, name)
    for start in range(0, 3000, 70):
        part = slice(start, start + 70)
        model.partial_fit(X[part], y[part], classes=[False, True])
    header, arrays = dump(model)
    assert header == expected[0]
    for name, array in arrays.items():
        assert_array_equal(array, expected[1][name], err_msg=name)
    assert len(scored) > 500
    assert np.isfinite(scored).all()
    assert np.abs(scored).max() < 20.0


def test_many_threads_score_while_one_learns():
    X, y = stream(3000)
    expected = dump(streamed(X, y, size=20, nonlinear=True, random_state=0))
    model = AUCStream(random_state=0).partial_fit(X[:20], y[:20], [False, True])
    ended, calls, failures = threading.Event(), [], []

    def serve():
        try:
            while not ended.is_set():
                calls.append(model.decision_function(X[:5]))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for thread in threads:
        thread.start()
    for start in range(20, 3000, 20):
        part = slice(start, start + 20)
        model.partial_fit(X[part], y[part])
    ended.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert np.isfinite(calls).all()
    assert np.abs(calls).max() < 20.0
    for name, array in dump(model)[1].items():
        assert_array_equal(array, expected[1][name], err_msg=name)
