"""Each estimator, with the settings that its docstring names, against the pseudo-code.

Weights are compared after every step. Learners of streams get one row at a time; what
is printed for known class moments, or for random pairs, is followed through ``fit``.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import aucmax
from as_published import pseudocode
from as_published.pseudocode import onto_l1_ball
from aucmax.base import class_moments as tally
from aucmax.base.ranker import generator
from aucmax.core.rows import as_rows
from aucmax.linear import mba
from aucmax.online import engine, fsauc, spdam, svrg
from aucmax.online import psam as sampler
from aucmax.online.engine import known_moments
from aucmax.online.engine.feature_table import D, W
from aucmax.online.psam import pair_order
from aucmax.storage.state import arrays

# Other data in the other layout: that layouts do not matter is tested elsewhere.
layouts = [np.asarray, sparse.csr_array]
seeds = pytest.mark.parametrize(
    ("seed", "layout"), list(enumerate(layouts)), ids=["0-dense", "1-CSR"]
)
starts = pytest.mark.parametrize("start", ["mixed", "one class"])

PLAIN = {"precondition": False, "average": False, "schedule": "printed"}
ONLY = {"precondition": False, "schedule": "printed"}
EXPLICIT = {"step": "explicit"}


def rows_of(seed, start="mixed", n=100, d=6, norm=None):
    """Return rows, some values zero and some rows twice, and labels +1 and -1."""
    rng = np.random.default_rng(seed)
    X = 0.4 * rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    X[:, 0] += 0.3
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n) > 0.3, 1, -1)
    X[n // 2 :: 9] = X[: len(X[n // 2 :: 9])]
    if start == "one class":  # and then the other, with the first row of it
        y[:12] = -1
        y[12] = 1
    else:
        y[:2] = 1, -1
    if norm:
        X *= norm / np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def assert_same(found, expected):
    atol = max(1e-9 * np.abs(expected).max(), 1e-15)  # means of iterates may be zero
    assert_allclose(found, expected, rtol=1e-9, atol=atol)


# Estimator, settings, pseudo-code, its arguments.
STREAMS = {
    "SOLAM": (
        "SOLAM",
        {"radius": 0.5, "eta0": 6.0, **ONLY, **EXPLICIT},
        "solam",
        (6.0, 0.5),
    ),
    "SOLAM-l1 with a penalty": (
        "SOLAM",
        {"radius": 0.5, "norm": "l1", "l2": 1.0, "eta0": 2.0, **ONLY, **EXPLICIT},
        "solam",
        (2.0, 0.5, 1.0, onto_l1_ball),
    ),
    "SOLAM, in its ball": (
        "SOLAM",
        {"radius": 100.0, "eta0": 0.7, **ONLY, **EXPLICIT},
        "solam",
        (0.7, 100.0),
    ),
    "regSOLAM": (
        "SOLAM",
        {"radius": None, "l2": 8.0, "eta0": 6.0, **ONLY, **EXPLICIT},
        "solam",
        (6.0, 0.5, 8.0),
    ),
    "SOLAM-l1": (
        "SOLAM",
        {"radius": 0.5, "norm": "l1", "eta0": 6.0, **ONLY, **EXPLICIT},
        "solam",
        (6.0, 0.5, 0.0, onto_l1_ball),
    ),
    "OPAUC": (
        "OPAUC",
        {"l2": 0.3, "eta0": 0.2, **PLAIN, **EXPLICIT},
        "opauc",
        (0.2, 0.3),
    ),
    "OPAUCr": (
        "OPAUC",
        {"l2": 0.3, "eta0": 0.2, "rank": 4, **PLAIN, **EXPLICIT},
        "opaucr",
        (0.2, 0.3, 4),
    ),
    "AdaOAM": (
        "AdaOAM",
        {"l2": 0.02, "eta0": 0.2, "delta": 0.1, **PLAIN},
        "adaoam",
        (0.2, 0.02, 0.1),
    ),
    "AdaOAM, at its ball": (
        "AdaOAM",
        {"l2": 100.0, "eta0": 0.5, "delta": 0.1, **PLAIN},
        "adaoam",
        (0.5, 100.0, 0.1),
    ),
    "UniExp": ("UniExp", {"eta0": 0.2, **PLAIN, **EXPLICIT}, "uniexp", (0.2,)),
}
for update in ("seq", "gra"):
    for policy in ("reservoir", "fifo"):
        STREAMS[f"OAM-{update}, {policy}"] = (
            "OAM",
            {"C": 0.3, "update": update, "policy": policy, "buffer_size": 8, **PLAIN},
            "oam",
            (0.3, 8, policy, update),
        )
for name, policy, step, covariance in (
    ("CBR-RS", "reservoir", 1.0, "full"),
    ("CBR-FIFO", "fifo", 1.0, "full"),
    ("CBR-FIFO, chapter 5", "fifo", 0.5, "full"),
    ("CBR-diag-RS", "reservoir", 1.0, "diag"),
    ("CBR-diag-FIFO", "fifo", 1.0, "diag"),
):
    STREAMS[name] = (
        "CBR",
        {
            "C": 0.3,
            "confidence": 0.8,
            "buffer_size": 8,
            "policy": policy,
            "step": step,
            "covariance": covariance,
            **ONLY,
        },
        "cbr",
        (0.3, 0.8, 8, policy, step, covariance == "diag"),
    )


@seeds
@starts
@pytest.mark.parametrize("case", STREAMS)
def test_streams(case, seed, start, layout):
    name, settings, printed, arguments = STREAMS[case]
    X, y = rows_of(seed, start)
    model = getattr(aucmax, name)(**settings)
    for k, expected in enumerate(getattr(pseudocode, printed)(X, y, *arguments)):
        model.partial_fit(layout(X[k : k + 1]), y[k : k + 1], classes=[-1, 1])
        assert_same(model.coef_[0], expected)
    assert np.abs(model.coef_).max() > 0.0


SWITCHES = {*PLAIN, *EXPLICIT}  # what is not a number of the paper's


def numbers_of(settings):
    return {
        key: value
        for key, value in settings.items()
        if key not in SWITCHES or (key == "step" and value != "explicit")
    }


@pytest.mark.parametrize("case", STREAMS)
def test_named_streams_take_the_steps_of_the_pseudo_code(case):
    name, settings, printed, arguments = STREAMS[case]
    X, y = rows_of(0)
    model = aucmax.named(name, printed=True, **numbers_of(settings))
    for k, expected in enumerate(getattr(pseudocode, printed)(X, y, *arguments)):
        model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[-1, 1])
        assert_same(model.coef_[0], expected)


@pytest.mark.parametrize(
    ("name", "settings"),
    [  # as the tests below have them
        ("SPAM", {"l2": 0.5, "l1": 0.1, "eta0": 0.7, "max_iter": 1, "shuffle": False}),
        ("SAM", {"l2": 0.05, "eta0": 0.5, "rskip": 4, "max_iter": 1}),
        ("ASAM", {"l2": 0.05, "eta0": 0.5, "rskip": 4, "askip": 3, "max_iter": 1}),
        ("PSAM", {"l2": 0.05, "eta0": 0.5, "rskip": 4, "askip": 3, "max_iter": 1}),
        ("SPDAM", {"l2": 0.5, "batch_size": 16}),
        ("SVRGAUC", {"l2": 0.5, "l1": 0.1, "eta0": 0.3, "tol": 0.0}),
        ("FSAUC", {"radius": 0.7, "eta0": 0.3, "n_expected": 1400}),
    ],
)
def test_named_settings_are_those_that_are_compared(name, settings):
    switches = {
        "SPAM": {**PLAIN, **EXPLICIT},
        "FSAUC": {**ONLY, **EXPLICIT},
        "SPDAM": {"schedule": "printed"},
        "SVRGAUC": {"schedule": "printed"},
    }.get(name, ONLY)
    compared = getattr(aucmax, name)(**settings, **switches).get_params()
    assert aucmax.named(name, printed=True, **settings).get_params() == compared


@pytest.mark.parametrize("case", STREAMS)
def test_chunks(case):
    """However a stream is cut, and ``fit`` in one pass where that learns as it goes."""
    name, settings, _, _ = STREAMS[case]
    X, y = rows_of(0, "one class")
    whole = getattr(aucmax, name)(**settings).partial_fit(X, y)
    parts = getattr(aucmax, name)(**settings)
    for k in range(0, len(y), 40):
        parts.partial_fit(X[k : k + 40], y[k : k + 40], classes=[-1, 1])
    for part, expected in arrays(whole.state_).items():
        assert_array_equal(arrays(parts.state_)[part], expected)
    if whole._learns_in_fit or name in ("OAM", "CBR"):
        model = getattr(aucmax, name)(**settings, max_iter=1, shuffle=False)
        assert_same(model.fit(X, y).coef_[0], whole.coef_[0])


@pytest.mark.parametrize(
    ("start", "layout"),
    list(zip(["one class", "mixed"], layouts, strict=True)),
    ids=["one class-dense", "mixed-CSR"],
)
@pytest.mark.parametrize(
    ("seed", "R", "eta1"),
    [(0, 0.7, 0.3), (1, 0.3, 1.0)],
    ids=["in the l1 ball", "in both balls"],
)
def test_fsauc(seed, start, layout, R, eta1):
    n = 1400  # three stages
    X, y = rows_of(seed, start, n, norm=1.0)
    model = aucmax.FSAUC(R, eta0=eta1, n_expected=n, **ONLY, **EXPLICIT)
    for k, (w, mean) in enumerate(pseudocode.fsauc(X, y, eta1, R)):
        model.partial_fit(layout(X[k : k + 1]), y[k : k + 1], classes=[-1, 1])
        state = model.state_
        feat = state.table.feat
        last = state.start * feat[D] + state.z[fsauc.SCALE] * feat[W]
        assert_same(last, w)
        if mean is not None:
            assert_same(model.coef_[0], mean)


@seeds
@pytest.mark.parametrize("theta", [0.5, 0.8])
@pytest.mark.parametrize(("l2", "l1"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.1)])
def test_spam(seed, layout, l2, l1, theta):
    X, y = rows_of(seed)
    settings = {"max_iter": 1, "shuffle": False, **PLAIN, **EXPLICIT}
    model = aucmax.SPAM(l2, l1, eta0=0.7, power_t=theta, **settings)
    last = model.fit(layout(X), y).coef_[0]
    rows, signed, known = model._rows_and_moments(layout(X), y, None)
    state = model._begin(rows, known)
    how = model._visit(rows, state, learn=False)
    for k, expected in enumerate(pseudocode.spam(X, y, 0.7, l2, l1, theta)):
        model._update(rows, signed, np.array([k]), state, how)
        assert_same(model._weights(state)[0], expected)
    assert_same(last, expected)


@seeds
@pytest.mark.parametrize("t0", [0.0, 40.0])
@pytest.mark.parametrize("name", ["SAM", "ASAM", "PSAM"])
def test_pairs(name, seed, layout, t0):
    X, y = rows_of(seed)
    l2, rskip, askip = 0.05, 4, 3
    eta0 = 1.0 / (l2 * t0) if t0 else 1e300
    settings = {"rskip": rskip, "max_iter": 1, "random_state": seed, **ONLY}
    if name != "SAM":
        settings["askip"] = askip
    model = getattr(aucmax, name)(l2, eta0=eta0, **settings)
    last = model.fit(layout(X), y).coef_[0]
    rows, signed, known = model._rows_and_moments(layout(X), y, None)
    state = model._begin(rows, known)
    how = model._visit(rows, state, learn=False)
    pos, neg = (order.take(len(y)) for order in pair_order(signed, generator(seed)))
    Z = X[pos] - X[neg]
    printed = pseudocode.asam(
        Z, l2, t0, rskip, settings.get("askip"), proximal=name == "PSAM"
    )
    for k, expected in enumerate(printed):
        pair = pos[k : k + 1], neg[k : k + 1]
        sampler.update(rows, *pair, state, how, *model._hyper())
        if name == "SAM" or k + 1 >= askip:  # before that there is no mean to return
            assert_same(model._weights(state)[0], expected)
    assert_same(last, expected)


@pytest.mark.parametrize("name", ["OPAUC", "SPDAM", "SVRGAUC"])
def test_what_cannot_be_run_as_printed_is_an_error(name):
    X, y = rows_of(0)
    settings = {"OPAUC": {"l2": 2.0, "eta0": 1.0}, "SPDAM": {"l2": 0.0}}
    model = getattr(aucmax, name)(
        schedule="printed", **settings.get(name, {"eta0": 1e9})
    )
    with pytest.raises(ValueError, match="printed"):
        model.fit(X, y)


def known_state(module, X, y, l2):
    """Return rows, shares and the state of a solver, features as they are."""
    rows, signed = as_rows(X), y.astype(float)
    known = tally.measure(rows, signed, X.shape[1])
    state = module.init(rows, len(y), X.shape[1])
    ridge = np.full(X.shape[1], float(l2))
    known_moments.fit_table_to_ridge(state.table, known, ridge, False)
    state.table.feat[D] = 1.0
    return rows, signed, svrg.half_shares(signed, known.weight), state


@seeds
@pytest.mark.parametrize("m", [100, 30])
@pytest.mark.parametrize(("l2", "l1"), [(0.0, 0.0), (0.5, 0.0), (0.5, 0.1)])
def test_svrg(seed, layout, l2, l1, m):
    X, y = rows_of(seed)
    rng, w = generator(seed), np.zeros(X.shape[1])
    rows, signed, share, state = known_state(svrg, layout(X), y, l2)
    chance, curvature = svrg.prepare_printed(share, state)
    ridge = np.full(X.shape[1], l2)
    how = engine.visit(rows, state.table, False, True)
    hyper = 0.3 / curvature, ridge, l1
    settings = {"schedule": "printed", "tol": 0.0, "random_state": seed}
    settings["update_frequency"] = None if m == len(y) else m
    for epoch in range(3):
        snapshot = svrg.take(rows, share, state.table, how)
        svrg.start_at(snapshot, state)
        picked = svrg.draw_evenly(chance, m, rng)
        for k, expected in enumerate(pseudocode.svrg(X, y, 0.3, l2, l1, w, picked)):
            svrg.update(rows, signed, picked[k : k + 1], state, how, *hyper)
            assert_same(state.table.feat[W], expected)
        w = expected
        # A pass of steps, a pass for the gradient.
        model = aucmax.SVRGAUC(l2, l1=l1, eta0=0.3, max_iter=2 * epoch + 1, **settings)
        assert_same(model.fit(layout(X), y).coef_[0], w)


@seeds
def test_spdam(seed, layout):
    X, y = rows_of(seed)
    rng, l2, m, passes = generator(seed), 0.5, 16, 4
    drawn = [spdam.draw(y, m, rng)[0].reshape(-1, m) for _ in range(passes)]
    batches = np.concatenate(drawn)
    rows, _, share, state = known_state(spdam, layout(X), y, l2)
    how = engine.visit(rows, state.table, False, True)
    zero = svrg.take(rows, share, state.table, how)
    spdam.start_at(zero, share, state)
    printed = pseudocode.spdam(X, y, l2, m, batches)
    # Theorem 5.1 of the thesis has σ without λ, and 8 for 4: see the pseudo-code.
    for k, ((sigma, tau, theta), expected) in enumerate(printed, 1):
        hyper = sigma, tau, theta, len(y) / m, np.full(X.shape[1], l2)
        spdam.update(rows, share, batches[k - 1], np.array([m]), state, how, *hyper)
        assert_same(state.table.feat[W], expected)
        if k % len(drawn[0]) == 0:
            model = aucmax.SPDAM(
                l2,
                batch_size=m,
                schedule="printed",
                max_iter=k // len(drawn[0]),
                random_state=seed,
            )
            assert_same(model.fit(layout(X), y).coef_[0], expected)


@seeds
@pytest.mark.parametrize(("l2", "l1"), [(0.5, 0.0), (0.5, 0.1), (0.0, 0.1)])
def test_mba(seed, layout, l2, l1):
    X, y = rows_of(seed)
    model = aucmax.MBA(l2, l1=l1, batch_size=20, n_batches=10, random_state=seed)
    model.fit(layout(X), y)
    pos, neg = mba.draw(y.astype(float), 20, 10, generator(seed))
    (expected,) = pseudocode.mba(X[pos] - X[neg], l2, l1)
    assert_same(model.coef_[0], expected)
