"""Features of categories and words, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer

from aucmax.io.csv_head import sample_of
from aucmax.tables import encode as encoding
from aucmax.tables import schema as schemas
from aucmax.tables.encode import encode
from aucmax.tables.schema import Columns, Schema
from aucmax.tables.spans import Spans, dictionary, objects


def spans(values):
    """Return values, None for missing, with some bytes of nobody's in between."""
    coded = [b"" if value is None else value.encode() for value in values]
    data = np.frombuffer(bytearray(b"#" + b"#".join(coded) + b"#"), np.uint8)
    lengths = np.array([len(value) for value in coded], np.int64)
    starts = 1 + np.cumsum(lengths + 1) - lengths - 1
    missing = np.array([value is None for value in values], bool)
    return Spans(data, starts, np.where(missing, -1, starts + lengths))


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
    by_name = dict(zip(names, map(spans, strings), strict=True))
    made = Columns(
        numbers,
        [by_name[name] for name in schema["categories"]],
        [by_name[name] for name in texts],
    )
    X = encode(Schema(**schema), made, dtype)
    parts = X.data, X.indices, X.indptr
    assert X.has_canonical_format  # as it says, and in truth
    assert sparse.csr_array(parts, X.shape).has_canonical_format
    assert X.indices.dtype == np.int32
    assert X.dtype == dtype
    return X.toarray() if dense else X


def hashed(tokens, n_features):
    return FeatureHasher(n_features, input_type="string").transform(tokens).toarray()


values = st.lists(st.one_of(st.none(), st.text(max_size=9)), min_size=1, max_size=9)


@settings(deadline=None, max_examples=50)
@given(values, st.text(max_size=6), st.sampled_from([1, 2, 7, 1 << 10, (1 << 31) - 9]))
def test_hashed_like_scikit_learn(values, name, size):
    tokens = [[] if v is None else [f"{name}={v}"] for v in values]
    if size > 1 << 20:
        spread = FeatureHasher(size, input_type="string").transform(tokens)
        ours = np.empty(len(values), np.int64)
        encoding._hash_values(*spans(values), encoding._prefix(name), size, 0, ours)
        known = ours >= 0
        assert (ours[known] >> 1).tolist() == spread.indices.tolist()
        assert (1 - 2 * (ours[known] & 1)).tolist() == spread.data.tolist()
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
        [
            f"{name}={value}"
            for name, value in zip(names, row, strict=True)
            if value is not None
        ]
        + [f"t={word}" for word in words(line)]
        for *row, line in zip(*table, text, strict=True)
    ]
    found = features([*table, text], [*names, "t"], ["t"], numbers, dtype, hash_size=5)
    expected = np.hstack([numbers, hashed(tokens, 5)])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_columns", [encoding._FEW, encoding._FEW + 1])
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
@given(st.lists(st.one_of(st.none(), st.text("ab\x00", max_size=2)), max_size=40))
def test_dictionary(values):
    codes, found = dictionary(spans(values))
    assert len(set(found)) == len(found)
    assert [None if code < 0 else found[code] for code in codes] == values
    made = objects(spans(values))
    assert made.tolist() == ["" if value is None else value for value in values]


def learnt(numbers, categories, wishes):
    """Return the schema after a pass over one column of either kind."""
    samples = [sample_of(spans(column), whole=True) for column in (["1"], ["a"])]
    schema = schemas.make_schema(["x", "c"], samples, wishes)
    return schemas.learn(schema, [Columns(numbers, [spans(categories)], [])] * 3)


def test_too_many_values(monkeypatch):
    monkeypatch.setattr(schemas, "MOST_VALUES", 3)
    wishes = schemas.Wishes(encode="onehot")
    assert learnt(np.zeros((3, 1)), list("cab"), wishes).values == [["a", "b", "c"]]
    with pytest.raises(ValueError, match="more than 3 features"):
        learnt(np.zeros((4, 1)), list("abcd"), wishes)


def test_means_of_large_numbers():
    numbers = np.array([[1e308], [np.nan], [1.5e308]])
    schema = learnt(numbers, ["a"] * 3, schemas.Wishes(missing="impute"))
    assert schema.means == [pytest.approx(1.25e308)]


def test_a_recipe_that_lacks_something():
    with pytest.raises(ValueError, match="the recipe does not say categories, columns"):
        Schema.from_json({"format": "csv"})
