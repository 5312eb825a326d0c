"""AUCClassifier tells scikit-learn's callbacks of each fitted model."""

import numpy as np
import pytest

from aucmax import BAM, AUCClassifier
from helpers.data import gaussian

pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


class Recorder:
    """Records the names of tasks as they begin and end."""

    def __init__(self):
        self.begun, self.ended, self.torn_down = [], [], 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **kwargs):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context, **kwargs):
        self.ended.append(context.task_name)

    def teardown(self, estimator, context):
        self.torn_down += 1


@pytest.mark.parametrize("budget", [None, 30.0])
def test_every_model_is_a_task(budget):
    X, y = gaussian(200)
    seen = Recorder()
    members = [("one", BAM()), ("two", BAM(l2=0.1))]
    model = AUCClassifier(members, cv=3, time_budget=budget, random_state=0)
    model.set_callbacks(seen).fit(X, y)
    n_rounds = seen.begun.count("round")
    assert n_rounds == 1 if budget is None else n_rounds > 1
    assert seen.begun[:2] == ["fit", "round"]
    assert seen.begun.count("one") == seen.begun.count("two") == 3 * n_rounds
    assert sorted(seen.begun) == sorted(seen.ended)
    assert seen.ended[-2:] == ["round", "fit"]
    assert seen.torn_down == 1


def test_callbacks_are_torn_down_after_an_error():
    X, y = gaussian(200)
    seen = Recorder()
    with pytest.raises(ValueError, match="only one class"):
        AUCClassifier().set_callbacks(seen).fit(X, np.ones(len(y)))
    assert seen.begun == ["fit"]
    assert seen.torn_down == 1
