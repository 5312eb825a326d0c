"""The estimators that the contracts cover, and how their states are compared.

Being in ``aucmax.ESTIMATORS`` is enough to be tested here. States are compared field by
field, whatever the fields are.
"""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

import aucmax
from aucmax import (
    BAM,
    BAMCV,
    CBR,
    FSAUC,
    MBA,
    OAM,
    OPAUC,
    PSAM,
    SOLAM,
    SPAM,
    SPDAM,
    SVRGAUC,
    AUCStream,
    Chain,
    KMeansNystroem,
    LeastSquaresAUC,
    LeastSquaresAUCCV,
    Projection,
    RandomFourier,
)
from aucmax.base.ranker import LinearRanker
from aucmax.blend.boosting import BoostedTrees
from aucmax.storage.state import arrays
from helpers.states import dump

# By default BAMCV fits more than a hundred models; a shorter path runs the same code.
SHORTER = {
    "BAMCV": {"l2s": 4, "cv": 2},
    "LeastSquaresAUCCV": {"cv": 3},
    "KernelAUCCV": {"n_components": 20, "widths": [1.0], "cv": 2},
    "AUCClassifier": {
        "members": [BAM(), BoostedTrees(5)],
        "cv": 2,
    },
}
PLAIN = [
    Chain(KMeansNystroem(20), SPAM(), first_rows=40)
    if name == "Chain"
    else getattr(aucmax, name)(**SHORTER.get(name, {}))
    for name in aucmax.ESTIMATORS
]
VARIANTS = [
    *PLAIN,
    SPAM(l1=0.01),
    SPAM(eta0=0.1, step="explicit", precondition=False, average=False),
    SPAM(schedule="inv"),
    SPAM(power_t=0.75),
    SPAM(schedule="constant", eta0=0.1),
    SOLAM(norm="l1", radius=1),
    SOLAM(l2=1e-3, radius=None),
    SOLAM(radius=0.05),
    OAM(update="gra", policy="reservoir", buffer_size=20),
    OAM(0.01, policy="reservoir", schedule="constant", precondition=False),
    CBR(policy="reservoir", precondition=False),
    CBR(covariance="diag"),
    MBA(l1=0.01),
    LeastSquaresAUC(l1=0.01),
    LeastSquaresAUC(solver="cg", tol=1e-12),
    LeastSquaresAUCCV([1.0, 1e-2], cv=3),
    BAM(0.01, loss="logistic"),
    BAM(l1=0.01),
    BAM(loss="huber"),
    BAMCV([1.0, 1e-2], cv=3, loss=["exponential"]),
    SVRGAUC(l1=0.01),
    SVRGAUC(update_frequency=50),
    PSAM(l2=0.1, rskip=3, askip=5, precondition=False),
    PSAM(l1=0.01),
    SPDAM(batch_size=1.0),
    OPAUC(eta0=0.1, step="explicit", precondition=False, average=False),
    OPAUC(rank=20),
    OPAUC(rank=40, step="explicit", eta0=0.1, precondition=False, average=False),
    FSAUC(radius=0.5),
    FSAUC(l2=1e-3, radius=None, n_expected=100),
    FSAUC(None, eta0=0.1, step="explicit", precondition=False),
    Chain(KMeansNystroem(20, linear=True), BAM()),
    Chain(RandomFourier(20, kind="sincos"), OAM(), first_rows=50),
    Chain(Projection(3), LeastSquaresAUC(), first_rows=30),
    AUCStream(half_life=400.0),
]
LINEAR = [e for e in VARIANTS if isinstance(e, LinearRanker)]
ONLINE = [estimator for estimator in VARIANTS if hasattr(estimator, "partial_fit")]
# Learners that sum moments in blocks: chunking changes rounding only, and a row of
# weight k equals k rows.
EXACT = {"LeastSquaresAUC"}
# Learners whose state is quadratic in the features, so that the number is limited.
NARROW = {"OPAUC", "AdaOAM", "CBR", "MBA", "LeastSquaresAUC", "LeastSquaresAUCCV"}
# Solvers that stop at a tolerance: they share the minimum, not the remaining gap.
ITERATIVE = {"SVRGAUC", "SPDAM"}
METHODS = ["fit", "partial_fit"]


def as_id(value):
    """Return the test id of a parameter."""
    text = value if isinstance(value, str) else repr(value)
    return re.sub(r"\s+", " ", text)


def with_methods(estimators):
    """Pair each estimator with the training methods that it has."""
    return [(e, method) for e in estimators for method in METHODS if hasattr(e, method)]


def one_of_each_fit():
    """Return one estimator for each definition of ``fit``.

    For contracts on validation and labels, which estimators that inherit ``fit`` share.
    """
    found = {(type(e).fit, type(e)._fit_rows): e for e in reversed(PLAIN)}
    return list(found.values())[::-1]


def each_of(estimators):
    """Parametrize a test by estimator."""
    return pytest.mark.parametrize("estimator", estimators, ids=as_id)


def each_way_of(estimators):
    """Parametrize a test by estimator and training method."""
    return pytest.mark.parametrize(
        ("estimator", "method"), with_methods(estimators), ids=as_id
    )


# Contracts on arithmetic run for every variant, contracts that an algorithm could break
# for every estimator, contracts on validation for every definition of ``fit``.
every, every_way = each_of(VARIANTS), each_way_of(VARIANTS)
linear = each_of(LINEAR)
plain_linear = each_of([estimator for estimator in PLAIN if estimator in LINEAR])
plain, plain_way = each_of(PLAIN), each_way_of(PLAIN)
online = each_of(ONLINE)
each_fit, each_fit_way = each_of(one_of_each_fit()), each_way_of(one_of_each_fit())
strict = pytest.mark.filterwarnings("error")


def seeded(estimator, **parameters):
    """Clone an estimator and set those of the parameters that it has."""
    wanted = {"random_state": 0, **parameters}
    wanted = {
        key: wanted[key.rpartition("__")[2]]
        for key in estimator.get_params()
        if key.rpartition("__")[2] in wanted
    }
    return clone(estimator).set_params(**wanted)


def trained(estimator, X, y, method="fit", **parameters):
    """Clone an estimator and train it by this method."""
    return getattr(seeded(estimator, **parameters), method)(X, y)


def learned_arrays(model):
    """Return the arrays and numbers of a trained model, by name."""
    if not isinstance(model, LinearRanker):
        return {"n_iter": np.array(model.n_iter_), **dump(model)[1]}
    state = arrays(model.state_) if hasattr(model, "state_") else {}
    found = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "n_iter": getattr(model, "n_iter_", 0),
        **state,
    }
    return {key: np.array(value, dtype=float) for key, value in found.items()}


def assert_same_bits(model, expected):
    """Compare states bit for bit."""
    left, right = learned_arrays(model), learned_arrays(expected)
    assert left.keys() == right.keys()
    for key in left:
        assert_array_equal(left[key], right[key], err_msg=key)


def comparable_parts(key, value):
    """Split an array into parts of one unit each: single numbers, or table rows."""
    numbers = key in ("z", "n", "weight", "rows") or np.ndim(value) != 1
    return np.atleast_1d(value) if numbers else np.atleast_2d(value)


def assert_close(model, expected, rtol=1e-10):
    """Compare states to a relative tolerance, each part by its largest number.

    Small numbers in a part may be differences of large ones and lose digits.
    """
    left, right = learned_arrays(model), learned_arrays(expected)
    assert left.keys() == right.keys()
    for key in left:
        for a, b in zip(
            comparable_parts(key, left[key]),
            comparable_parts(key, right[key]),
            strict=True,
        ):
            atol = rtol * np.abs(b).max(initial=1e-6)
            assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=key)


def assert_same(model, expected):
    """Compare states that differ by chunking only."""
    if type(getattr(model, "learner", model)).__name__ in EXACT:
        assert_close(model, expected)
    else:
        assert_same_bits(model, expected)


def auc_of(model, X, y):
    return roc_auc_score(y, model.decision_function(X))


def assert_finite(model):
    for key, value in learned_arrays(model).items():
        assert np.isfinite(value).all(), f"{key}: {value}"


def refuses_folds(estimator, X, y):
    """Return True if ``fit`` rejects the data because a class has a single row."""
    if "cv" not in estimator.get_params() or np.bincount(y).min() > 1:
        return False
    single = type(estimator).__name__.removesuffix("CV")
    single = {"KernelAUC": "KernelBAM", "AUCClassifier": "BAM"}.get(single, single)
    with pytest.raises(ValueError, match=rf"two rows of each class.*use {single}\."):
        seeded(estimator).fit(X, y)
    return True
