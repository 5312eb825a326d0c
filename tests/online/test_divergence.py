"""The standard deviation of scores from class moments, against the scores."""

import numpy as np
import pytest
from sklearn.base import clone

from aucmax import ASAM, CBR, FSAUC, OAM, OPAUC, PSAM, SAM, SOLAM, SPAM, AdaOAM, UniExp
from aucmax.online import opauc
from aucmax.online.base import score_deviation
from aucmax.online.engine.known_moments import PRIOR
from helpers.data import heavy

LEARNERS = [
    *(ASAM(), CBR(), CBR(covariance="diag"), FSAUC(), OAM(), OPAUC(), OPAUC(rank=3)),
    *(PSAM(), SAM(), SOLAM(), SPAM(), AdaOAM(), UniExp()),
]


def factorial():
    """Return features that are uncorrelated within each class, and overall."""
    levels = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
    X, y = levels[:, :4] * [1e-3, 1.0, 1e3, 5.0] + [0.0, 50.0, 0.0, -7.0], levels[:, 4]
    X = np.vstack([X, X[y > 0] + 0.0])  # a class twice as often: balance is in it
    return np.column_stack([X, np.full(len(X), 3.3)]), np.append(y, np.ones(16))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: repr(m))
def test_is_the_deviation_of_the_scores(learner, method):
    X, y = factorial()
    model = getattr(clone(learner), method)(X, y)
    _, *table = model._last(model.state_)
    state = model.state_
    ref = state.table.ref if hasattr(state, "table") else state.V[opauc.REF]
    w = np.array([300.0, 0.2, -1e-3, 0.0, 0.0])
    # About the reference points, which are the means of what is far from zero.
    second = np.mean([np.mean((X[y == c] - ref) ** 2, axis=0) for c in (-1, 1)], axis=0)
    found = score_deviation(w, *table, model._class_weights(state))
    if method == "fit" and hasattr(state, "table"):
        # All features are in all rows: what ``fit`` adds are four rows more.
        usual = np.mean((X - ref) ** 2, axis=0)
        second += usual * PRIOR * (0.5 / np.sum(y > 0) + 0.5 / np.sum(y < 0))
    assert found == pytest.approx(np.sqrt(w**2 @ second), rel=1e-9)
    for factor in (1e-100, 1e100):
        other = score_deviation(factor * w, *table, model._class_weights(state))
        assert other == pytest.approx(factor * found, rel=1e-12)
    assert score_deviation(1e200 * w, *table, model._class_weights(state)) == np.inf


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "learner",
    [SOLAM(None, eta0=500), FSAUC(None, eta0=500)],
    ids=lambda m: repr(m),
)
def test_divergence_is_an_error(learner, method):
    learner.set_params(random_state=0)
    with pytest.raises(ValueError, match=r"has diverged: scores deviate by \de\+"):
        getattr(learner, method)(*heavy())
