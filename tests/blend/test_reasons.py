"""Reasons for scores: contributions of columns."""

import numpy as np
import pandas as pd
import pytest

from aucmax import BAM, AUCClassifier
from aucmax.blend.explain import contributions, largest


def test_contributions_of_a_linear_score_are_exact():
    rng = np.random.default_rng(0)
    X, background, w = (
        rng.normal(size=(6, 4)),
        rng.normal(size=(9, 4)),
        rng.normal(size=4),
    )
    columns = {"a": np.array([0]), "b": np.array([1, 2]), "c": np.array([3])}
    found = contributions(X, background, columns, lambda rows: rows @ w)
    away = (X - background.mean(axis=0)) * w
    expected = np.column_stack([away[:, 0], away[:, 1:3].sum(axis=1), away[:, 3]])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    top = largest(found, columns, 2)
    for row, reasons in zip(expected, top, strict=True):
        order = np.argsort(-np.abs(row))[:2]
        assert [one.column for one in reasons] == ["abc"[j] for j in order]


def test_reasons_of_a_frame_name_its_columns():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"signal": rng.normal(size=400), "noise": rng.normal(size=400)}
    )
    frame["kind"] = rng.choice(["u", "v"], 400)
    y = (
        frame.signal + 2.0 * (frame.kind == "u") + rng.normal(size=400) > 1.5
    ).to_numpy()
    model = AUCClassifier(members=[BAM()], random_state=0).fit(frame, y)
    best = np.argsort(-model.decision_function(frame))[:5]
    for reasons in model.reasons(frame.iloc[best], background=frame, top=2):
        assert {one.column for one in reasons} == {"signal", "kind"}
        assert all(one.contribution > 0.0 for one in reasons)
    with pytest.raises(ValueError, match="no column"):
        model.reasons(frame[["noise"]])
