"""Identifiers of digits: features if they help."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import aucmax
from aucmax import AUCClassifier
from aucmax.blend.row_layout import RowLayout
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.schema import Overrides
from aucmax.tables.structure import find_structure
from helpers.commands import invoke

N = 600


def table(tells):
    """Return policies whose numbers tell of the label, or do not."""
    rng = np.random.default_rng(0)
    number, age = 5000 + rng.permutation(N), rng.integers(18, 80, N)
    late = number > 5000 + N // 2 if tells else age > 50
    frame = pd.DataFrame(
        {"PolicyNumber": number, "age": age, "job": rng.choice(["a", "b", "c"], N)}
    )
    return frame, rng.random(N) < np.where(late, 0.6, 0.2)


def test_the_encoder_keeps_identifiers_of_digits_for_a_test():
    frame, _ = table(True)
    coded = TableEncoder.fit(frame, Overrides(encode="codes", missing="keep"))
    assert coded.schema.n_levels == [-1, 0, 4]
    assert coded.column_of_feature == ["PolicyNumber", "age", "job"]
    assert_array_equal(coded.transform(frame)[:, 0], frame.PolicyNumber)
    plain = TableEncoder.fit(frame)
    assert set(plain.column_of_feature) == {"age", "job"}
    rows = frame.rename(columns={"PolicyNumber": "id"})  # the number of the row
    coded = TableEncoder.fit(rows, Overrides(encode="codes", missing="keep"))
    assert coded.column_of_feature == ["age", "job"]


@pytest.mark.parametrize("tells", [True, False])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_an_identifier_is_left_out_unless_it_helps(tells, layout):
    frame, y = table(tells)
    X = np.column_stack([frame.PolicyNumber, frame.age]).astype(float)
    given = layout(X.copy())
    fitted, rows = RowLayout.of(given, [-1, 0]).fit(given, y, 0)
    expected = X if tells else np.column_stack([np.zeros(N), X[:, 1]])
    assert_array_equal(rows.columns, expected)
    again = RowLayout.restored(2, fitted.arrays())
    assert_array_equal(again.rows(given).columns, expected)
    assert_array_equal(given if layout is np.asarray else given.toarray(), X)


@pytest.mark.parametrize("tells", [True, False])
def test_a_blend_of_a_table_with_an_identifier(tells, tmp_path):
    frame, y = table(tells)
    copies = pd.concat([frame, frame.assign(PolicyNumber=9000 + np.arange(N))])
    copies, y = copies.reset_index(drop=True), np.concatenate([y, y])
    model = AUCClassifier(random_state=0).fit(copies, y)
    shown = next(one for one in model.columns_ if one.name == "PolicyNumber")
    assert shown[1:] == ("identifier", "1 feature, if it helps")
    scores = model.decision_function(copies)
    other = model.decision_function(copies.assign(PolicyNumber=1))
    assert np.array_equal(scores, other) is not tells
    assert [hint.column for hint in model.hints_] == ["PolicyNumber"] * tells
    # Equal rows share a fold only if the identifier is none of their features.
    assert ("equal an earlier row" in model.explain()) is not tells
    model.save(tmp_path / "m")
    loaded = aucmax.load(tmp_path / "m")
    assert_array_equal(loaded.decision_function(copies), scores)
    assert loaded.hints_ == model.hints_


def test_identifiers_are_no_features_of_later_rows_or_few_rows():
    frame, y = table(True)
    X = np.column_stack([frame.PolicyNumber, frame.age]).astype(float)
    layout = RowLayout.of(X, [-1, 0])
    _, rows = layout.fit(X, y, 0, exchangeable=False)
    assert not rows.columns[:, 0].any()
    _, rows = layout.fit(X[:100], y[:100], 0)
    assert not rows.columns[:, 0].any()


def test_identifiers_that_are_noise_are_left_out():
    rng, kept = np.random.default_rng(0), 0
    for seed in range(20):
        X = np.column_stack([rng.permutation(N), rng.normal(size=N)]).astype(float)
        y = X[:, 1] + rng.normal(size=N) > 0.5
        fitted, _ = RowLayout.of(X, [-1, 0]).fit(X, y, seed)
        kept += fitted.levels[0] == 0
    assert kept == 0


def test_parts_of_dates_are_no_groups():
    frame, y = table(True)
    week = frame.PolicyNumber.to_numpy() // 20
    assert find_structure({"week_number": week}, y) == []
    assert [one.kind for one in find_structure({"agent_number": week}, y)] == ["group"]


def test_the_command_line_tells_of_identifiers_too(tmp_path):
    frame, y = table(True)
    path = tmp_path / "t.csv"
    frame.assign(y=y.astype(int)).to_csv(path, index=False)
    result = invoke("train", path, "-o", tmp_path / "m", "--label", "y")
    assert result.exit_code == 0, result.stderr
    assert "Column 'PolicyNumber' identifies rows" in result.stderr
    assert "--time PolicyNumber" in result.stderr
