"""Histograms of training columns, and the stability of new ones."""

from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest

import aucmax
from aucmax import BAM, AUCClassifier
from aucmax.blend.column_histograms import column_histograms
from aucmax.blend.columns import FeatureView, TableRows
from aucmax.metrics import stability_index


def rows_of(columns, levels):
    levels = np.array(levels)
    return TableRows(columns, FeatureView.fit(columns, levels), None)


def slow_index(old, new, common):
    """Return the index over the words in ``common``, other words, and missing ones."""

    def shares(words):
        kinds = [
            "missing" if w is None else w if w in common else "more" for w in words
        ]
        counts = Counter(kinds)
        bins = [*common, "more", "missing"]
        total = len(words) + 0.5 * len(bins)
        return [(counts[one] + 0.5) / total for one in bins]

    pairs = zip(shares(old), shares(new), strict=True)
    return sum((q - p) * log(q / p) for p, q in pairs)


def test_numbers_have_the_index_of_the_metrics():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(500, 2)), rng.normal(0.3, 1.2, size=(300, 2))
    old[:, 1], new[:, 1] = np.round(old[:, 1]), np.round(new[:, 1])
    old[::7, 1], new[::3, 1] = np.nan, np.nan
    found = column_histograms(rows_of(old, [0, 0]), ["a", "b"])
    assert [one.column for one in found] == ["a", "b"]
    for j, one in enumerate(found):
        expected = stability_index(old[:, j], new[:, j]).value
        assert one.stability(one.bins(new[:, j])) == pytest.approx(expected, rel=1e-12)
        assert sum(one.counts) == 500


@pytest.mark.parametrize("kinds", [3, 40])
def test_categories_have_the_index_of_their_shares(kinds):
    rng = np.random.default_rng(kinds)
    weight = rng.dirichlet(np.ones(kinds))
    old = rng.choice(kinds, 2000, p=weight).astype(float)
    new = rng.choice(kinds, 500, p=weight[::-1]).astype(float)
    old[:50], new[:100] = np.nan, np.nan
    (one,) = column_histograms(rows_of(old[:, None], [kinds]), ["town"])
    assert len(one.counts) <= 20
    words_old, words_new = (
        [None if np.isnan(x) else str(int(x)) for x in column] for column in (old, new)
    )
    common = [w for w, _ in Counter(filter(None, words_old)).most_common(18)]
    by_code = {str(int(code)) for code in one.edges}
    kept, counts = Counter(words_old), sorted(Counter(words_old).values())
    assert len(by_code) == len(common)
    assert min(kept[w] for w in by_code) >= counts[-19 if kinds > 18 else 0]
    expected = slow_index(words_old, words_new, sorted(by_code))
    assert one.stability(one.bins(new)) == pytest.approx(expected, rel=1e-12)


def test_columns_with_several_features_have_no_histogram():
    columns = np.random.default_rng(1).normal(size=(100, 3))
    found = column_histograms(rows_of(columns, [0, 0, 0]), ["day", "day", "x"])
    assert [one.column for one in found] == ["x"]


def test_a_model_file_keeps_the_histograms(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"x": rng.normal(size=400), "kind": rng.choice(["a", "b"], 400)}
    )
    y = frame.x + rng.normal(size=400) > 0.0
    model = AUCClassifier([BAM()], random_state=0).fit(frame, y)
    best, other = model.important_histograms(10)
    assert (best.column, other.column) == ("x", "kind")
    assert model.important_histograms(1) == [best]
    model.save(tmp_path / "m.aucmax")
    again = aucmax.load(tmp_path / "m.aucmax")
    assert again.important_histograms(10) == [best, other]
    rows = again.encoder_.transform(frame.assign(x=frame.x + 1.0))
    moved = again.encoded_columns(rows)
    expected = stability_index(frame.x, frame.x + 1.0).value
    assert best.stability(best.bins(moved[:, best.feature])) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (["x", 0, False, [1.0], [1, 2]], "1 edges, 2 counts"),
        (["x", 0, False, 1.0, [1, 2]], "not a list of bins"),
        (["x", 0, False, ["a"], [1, 2, 3]], "expected a number"),
        (["x", 7, False, [1.0], [1, 2, 3]], "does not have"),
    ],
)
def test_damaged_histograms_are_refused(line, error):
    X = np.random.default_rng(4).normal(size=(100, 3))
    model = AUCClassifier([BAM()], random_state=0).fit(X[:, :2], X.sum(axis=1) > 0.0)
    state = model.state()
    state.header["notes"]["histograms"] = [line]
    with pytest.raises(ValueError, match=error):
        AUCClassifier.from_state(state)
    del state.header["notes"]["histograms"]  # files of version 0.2.0 have none
    assert AUCClassifier.from_state(state).important_histograms(10) == []


def test_a_note_with_a_huge_integer_is_refused():
    X = np.random.default_rng(4).normal(size=(100, 2))
    model = AUCClassifier([BAM()], random_state=0).fit(X, X.sum(axis=1) > 0.0)
    state = model.state()
    for place in range(4):
        auc = [*state.header["notes"]["auc"]]
        auc[place] = 10**400
        changed = state.header | {"notes": state.header["notes"] | {"auc": auc}}
        with pytest.raises(ValueError, match="expected a number"):
            AUCClassifier.from_state(state._replace(header=changed))
