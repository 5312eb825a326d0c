"""Features of categories and words, against scikit-learn."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer

from aucmax.tables import encoder as encoders
from aucmax.tables.cells import words
from aucmax.tables.encoder import TableEncoder
from aucmax.tables.hashing import hashed as hashed_features
from aucmax.tables.missing_values import MISSING
from aucmax.tables.schema import Overrides, Schema


def column(values):
    return pa.array(values, pa.string())


def features(
    strings,
    names=("c",),
    texts=(),
    numbers=None,
    dtype=np.float64,
    dense=True,
    **schema,
):
    """Return X of columns of strings."""
    n = len(strings[0])
    numbers = np.empty((n, 0), dtype) if numbers is None else numbers
    schema = {
        "columns": [],
        "header": True,
        "numbers": [f"x{i}" for i in range(numbers.shape[1])],
        "categories": [name for name in names if name not in texts],
        "texts": list(texts),
        "label": None,
        "label_is_number": False,
        "weight": None,
        "encode": "hash",
        "hash_size": 16,
        "missing": "zero",
        **schema,
    }
    columns = dict(zip(names, map(column, strings), strict=True))
    columns |= {f"x{i}": pa.array(one) for i, one in enumerate(numbers.T)}
    encoder = TableEncoder(Schema(**schema), dtype)
    X = encoder.transform(pa.RecordBatch.from_pydict(columns))
    parts = X.data, X.indices, X.indptr
    assert X.has_canonical_format  # as it says, and in truth
    assert sparse.csr_array(parts, X.shape).has_canonical_format
    assert X.indices.dtype == np.int32
    assert X.dtype == dtype
    return X.toarray() if dense else X


def hashed(tokens, n_features):
    return FeatureHasher(n_features, input_type="string").transform(tokens).toarray()


# Blanks around a value do not count, and an empty one is missing.
word = st.text(max_size=9).map(lambda text: text.strip(" \t\r"))
word = word.filter(lambda text: text not in MISSING)
values = st.lists(st.one_of(st.none(), word), min_size=1, max_size=9)


@settings(deadline=None, max_examples=50)
@given(values, st.text(max_size=6), st.sampled_from([1, 2, 7, 1 << 10, (1 << 31) - 9]))
def test_hashed_like_scikit_learn(values, name, size):
    tokens = [[] if v is None else [f"{name}={v}"] for v in values]
    if size > 1 << 20:
        spread = FeatureHasher(size, input_type="string").transform(tokens)
        known = [value for value in values if value is not None]
        feature, sign = hashed_features(name, known, size)
        assert feature.tolist() == spread.indices.tolist()
        assert sign.tolist() == spread.data.tolist()
        return
    np.testing.assert_array_equal(
        features([values], [name], hash_size=size), hashed(tokens, size)
    )


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(st.sampled_from("aBÉß_1 .\n\x00İΣσ漢\U00010400"), max_size=12),
        min_size=1,
        max_size=6,
    )
)
def test_words_like_scikit_learn(texts):
    words = CountVectorizer().build_analyzer()
    tokens = [[f"t={word}" for word in words(text)] for text in texts]
    found = features([texts], ["t"], ["t"])
    np.testing.assert_array_equal(found, hashed(tokens, 16))


def test_words_in_all_scripts():
    letters = "".join(map(chr, [*range(1, 0xD800), *range(0xE000, 0x30000)]))
    texts = [
        letters[i : i + 99] + " and " + letters[i : i + 9] for i in range(0, 2**17, 97)
    ]
    words = CountVectorizer().build_analyzer()
    tokens = [[f"t={word}" for word in words(text)] for text in texts]
    np.testing.assert_array_equal(features([texts], ["t"], ["t"]), hashed(tokens, 16))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_come_first_and_what_collides_adds_up(dtype):
    rng = np.random.default_rng(0)
    n = 200
    numbers = (rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)).astype(dtype)
    names = [f"c{i}" for i in range(6)]
    table = [rng.choice(["red", "green", "", None], n).tolist() for _ in names]
    text = [" ".join(rng.choice(["up", "down", "Up", "x"], 5)) for _ in range(n)]
    words = CountVectorizer().build_analyzer()
    tokens = [
        [f"{name}={value}" for name, value in zip(names, row, strict=True) if value]
        + [f"t={word}" for word in words(line)]
        for *row, line in zip(*table, text, strict=True)
    ]
    found = features([*table, text], [*names, "t"], ["t"], numbers, dtype, hash_size=5)
    expected = np.hstack([numbers, hashed(tokens, 5)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_columns", [128, 129])
@pytest.mark.parametrize("size", [1 << 8, 1 << 30])  # with and without collisions
def test_many_categories(n_columns, size):
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in range(n_columns)]
    table = [rng.choice(["a", "b", "c"], 20).tolist() for _ in names]
    tokens = [
        [f"{name}={value}" for name, value in zip(names, row, strict=True)]
        for row in zip(*table, strict=True)
    ]
    hasher = FeatureHasher(size, input_type="string")
    found = features(table, names, hash_size=size, dense=False)
    assert (found != hasher.transform(tokens)).nnz == 0


def test_onehot_and_words():
    values = ["b", None, "a", "new"]
    texts = ["one two", "", "two two", "x"]
    found = features(
        [values, texts], ["c", "t"], ["t"], encode="onehot", values=[["a", "b"]]
    )
    words = [["t=one", "t=two"], [], ["t=two", "t=two"], []]
    np.testing.assert_array_equal(found[:, :2], [[0, 1], [0, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(found[:, 2:], hashed(words, 16))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.one_of(st.none(), st.text("ab\x00 ", max_size=3)), max_size=40))
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_words(kind, values):
    array = pa.array(values, pa.string()).cast(kind)
    codes, found = words(array)
    assert len(set(found)) == len(found)
    expected = [
        None if not (value or "").strip() else value.strip() for value in values
    ]
    assert [None if code < 0 else found[code] for code in codes] == expected
    assert words(array.dictionary_encode()).objects().tolist() == [
        value or "" for value in expected
    ]


def learnt(numbers, categories, overrides):
    """Return the schema after a pass over one column of either kind."""
    sample = pa.RecordBatch.from_pydict({"x": [1.0], "c": ["a"]})
    encoder = TableEncoder.fit(sample, overrides)
    batch = pa.RecordBatch.from_pydict({"x": numbers, "c": categories})
    encoder.learn([batch] * 3)
    return encoder.schema


def test_too_many_values(monkeypatch):
    monkeypatch.setattr(encoders, "MOST_VALUES", 3)
    overrides = Overrides(encode="onehot")
    assert learnt(np.zeros(3), list("cab"), overrides).values == [["a", "b", "c"]]
    with pytest.raises(ValueError, match="more than 3 features"):
        learnt(np.zeros(4), list("abcd"), overrides)


def test_means_of_large_numbers():
    numbers = pa.array([1e308, None, 1.5e308])
    schema = learnt(numbers, ["a"] * 3, Overrides(missing="impute"))
    assert schema.means == [pytest.approx(1.25e308)]


def test_a_recipe_that_lacks_something():
    with pytest.raises(ValueError, match="the recipe does not say categories, columns"):
        Schema.from_json({"format": "csv"})


def test_codes_keep_missing_values_and_categories():
    n = 200
    frame = pd.DataFrame(
        {
            "x": [None if i % 10 == 0 else i / 7 for i in range(n)],
            "kind": ["red" if i % 3 else "blue" for i in range(n)],
            "shop": [None if i == 5 else f"s{i % 90}" for i in range(n)],
            "member": ["Yes" if i % 2 else "no" for i in range(n)],
            "day": pd.date_range("2024-01-30 06:00", periods=n).astype(str),
        }
    )
    encoder = TableEncoder.fit(frame, Overrides(encode="codes", missing="keep"))
    encoder = TableEncoder.from_json(json.loads(json.dumps(encoder.to_json())))
    names = ["x", "member", "day: time", "day: month", "day: weekday", "day: hour"]
    assert encoder.get_feature_names_out() == [*names, "kind", "shop"]
    assert encoder.column_of_feature == [*"x", "member", *["day"] * 4, "kind", "shop"]
    assert encoder.schema.n_levels == [0] * 6 + [3, 91]
    X = encoder.transform(frame)
    np.testing.assert_array_equal(X[:, 0], pd.to_numeric(frame.x))
    np.testing.assert_array_equal(X[:, 1], np.arange(n) % 2)
    day = pd.to_datetime(frame.day)
    np.testing.assert_array_equal(X[:, 3], day.dt.month)
    np.testing.assert_array_equal(X[:, 4], day.dt.weekday)
    np.testing.assert_array_equal(X[:, 5], 6.0)
    kinds = np.array(encoder.schema.values[0])
    assert kinds[X[:, 6].astype(int)].tolist() == frame.kind.tolist()
    shops = np.array(encoder.schema.values[1])
    known = np.arange(n) != 5
    assert shops[X[known, 7].astype(int)].tolist() == frame.shop[known].tolist()
    assert np.isnan(X[5, 7])
    with pytest.warns(UserWarning, match=r"or are new: 'kind'\."):
        other = encoder.transform(frame[:1].assign(kind="green", shop="new"))
    assert other[0, 6:].tolist() == [2.0, 90.0]


@pytest.mark.parametrize("encode", ["auto", "onehot", "hash", "codes"])
def test_one_hot_features_know_their_category(encode):
    shop = [f"shop {i % 70} of {i % 7}" for i in range(400)]
    frame = pd.DataFrame(
        {"x": np.arange(400) % 9, "shop": shop, "kind": ["a", "b"] * 200}
    )
    encoder = TableEncoder.fit(frame, Overrides(encode=encode, hash_size=16))
    found = encoder.category_of_feature.tolist()
    categories = encoder.schema.categories
    columns = encoder.column_of_feature
    expected = [categories.index(c) if c in categories else -1 for c in columns]
    if encode == "codes":
        expected = [-1] * len(columns)
    assert found == expected
    assert len(found) == encoder.n_features
    assert (max(found) == 1) == (encode in ("auto", "onehot"))


def test_warnings_of_many_requests_are_alike():
    frame = pa.table({"kind": ["a", "b"] * 40, "size": ["1.5", "2.25"] * 40})
    encoder, texts = TableEncoder.fit(frame), []
    for count in (1, 3):
        rows = {"kind": ["new"] * count, "size": ["wrong"] * count}
        with pytest.warns(UserWarning, match=r"or are new: 'kind'\.") as warned:
            encoder.transform(pa.table(rows))
        texts.append([str(one.message) for one in warned])
    assert len(texts[0]) == 2
    assert texts[0] == texts[1]
