"""Warnings refer to the line that called aucmax, past wrappers of scikit-learn."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aucmax import BAM, AUCClassifier
from aucmax.core.validation import DataWarning
from helpers.data import gaussian


@pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
def test_convergence_warning_names_this_file(wrap):
    X, y = gaussian(200)
    with pytest.warns(ConvergenceWarning) as caught:
        wrap(BAM(max_iter=1, tol=1e-12)).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_leak_warning_names_this_file():
    X, y = gaussian(200)
    leaky = np.column_stack([X, y])
    model = make_pipeline(StandardScaler(), AUCClassifier([BAM()], random_state=0))
    with pytest.warns(DataWarning, match="alone") as caught:
        model.fit(leaky, y)
    assert {warning.filename for warning in caught} == {__file__}
