"""Identifiers of digits: left out, unless the user names them."""

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.testing import assert_array_equal

import aucmax
from aucmax import AUCClassifier
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.schema import Overrides
from aucmax.tables.structure import find_structure

N = 600


def table():
    """Return policies whose numbers tell of the label."""
    rng = np.random.default_rng(0)
    number, age = 5000 + rng.permutation(N), rng.integers(18, 80, N)
    late = number > 5000 + N // 2
    frame = pd.DataFrame(
        {"PolicyNumber": number, "age": age, "job": rng.choice(["a", "b", "c"], N)}
    )
    return frame, rng.random(N) < np.where(late, 0.6, 0.2)


def test_the_encoder_leaves_out_identifiers_unless_they_are_named():
    frame, _ = table()
    coded = Overrides(encode="codes", missing="keep")
    encoder = TableEncoder.fit(frame, coded)
    assert encoder.schema.n_levels == [0, 4]
    assert encoder.column_of_feature == ["age", "job"]
    assert set(TableEncoder.fit(frame).column_of_feature) == {"age", "job"}
    named = TableEncoder.fit(frame, replace(coded, numeric=["PolicyNumber"]))
    assert named.column_of_feature == ["PolicyNumber", "age", "job"]


def test_a_blend_of_a_table_with_an_identifier(tmp_path):
    frame, y = table()
    copies = pd.concat([frame, frame.assign(PolicyNumber=9000 + np.arange(N))])
    copies, y = copies.reset_index(drop=True), np.concatenate([y, y])
    model = AUCClassifier(random_state=0).fit(copies, y)
    shown = next(one for one in model.columns_ if one.name == "PolicyNumber")
    assert shown[1:] == ("identifier", "left out")
    scores = model.decision_function(copies)
    assert_array_equal(scores, model.decision_function(copies.assign(PolicyNumber=1)))
    assert "PolicyNumber" not in [one.column for one in model.importances_]
    assert "equal an earlier row" in model.explain()
    model.save(tmp_path / "m")
    loaded = aucmax.load(tmp_path / "m")
    assert_array_equal(loaded.decision_function(copies), scores)


def test_parts_of_dates_are_no_groups():
    frame, y = table()
    week = frame.PolicyNumber.to_numpy() // 20
    assert find_structure({"week_number": week}, y) == []
    assert [one.kind for one in find_structure({"agent_number": week}, y)] == ["group"]
