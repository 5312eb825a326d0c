"""JSON lines: values, nested objects, malformed lines, positions, scores."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aucmax.io import json_lines, text
from aucmax.io.csv_source import CsvSource
from aucmax.io.json_lines import JsonLinesSource, find_types, parse, split
from aucmax.io.open_data import open_data
from helpers.commands import invoke

RNG = np.random.default_rng(0)
N = 200
FRAME = pd.DataFrame(
    {
        "amount": RNG.exponential(9.0, N).round(2),
        "kind": RNG.choice(["red", "gr\u00fcn", 'a "b"'], N),
        "when": pd.date_range("2024-01-01", periods=N, freq="7h").astype(str),
        "y": RNG.integers(0, 2, N),
    }
)


def records():
    return FRAME.to_dict("records")


def write(path, lines):
    path.write_text("\n".join(json.dumps(one) if one != "" else "" for one in lines))
    return str(path)


def rows(source, start=None):
    chunks = list(source.batches() if start is None else source.batches(start))
    X = np.vstack([np.asarray(chunk.rows.todense()) for chunk in chunks])
    return X, np.concatenate([chunk.labels for chunk in chunks]), chunks


def test_the_same_rows_as_csv(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    objects = records()
    path = write(tmp_path / "a.jsonl", objects)
    source = open_data([path], label="y")
    table = CsvSource([str(tmp_path / "a.csv")], label="y")
    assert isinstance(source, JsonLinesSource)
    assert source.feature_names() == table.feature_names()
    for found, expected in zip(rows(source)[:2], rows(table)[:2], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_nested_objects_and_absent_keys(tmp_path):
    lines = [
        {"user": {"age": i % 50, "at": {"city": "xy"[i % 2]}}, "y": i % 2, "z": i * 1.5}
        for i in range(N)
    ]
    del lines[3]["z"], lines[4]["user"]["at"], lines[5]["user"]
    source = JsonLinesSource([write(tmp_path / "a.jsonl", lines)], label="y")
    names = source.feature_names()
    X = rows(source)[0]
    assert {"user.age", "user.at.city=x", "z", "z is missing"} <= {*names}
    assert X[3, names.index("z is missing")] == 1.0
    assert X[4, names.index("user.at.city=(missing)")] == 1.0
    assert X[5, names.index("user.age is missing")] == 1.0
    assert X[6, names.index("user.age")] == 6.0


def test_malformed_lines_have_places(tmp_path):
    objects = records()
    lines = [json.dumps(one) for one in objects]
    lines[10] = ""
    lines[20] = '{"amount": 1, '
    lines[21] = "[1, 2]"
    lines[30] = lines[30].replace('"amount": ', '"amount": "x", "amount_": ')
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines) + "\n")
    source = JsonLinesSource([str(path)], label="y", drop=["amount_"])
    X, y, (chunk,) = rows(source)
    assert [bad.line for bad in chunk.malformed] == [21, 22, 31]
    assert "not a JSON object" in chunk.malformed[0].problem
    assert "list in place of an object" in chunk.malformed[1].problem
    assert chunk.malformed[2].column == "amount"
    assert chunk.malformed[1].text == b"[1, 2]"
    kept = [i for i in range(N) if i not in (10, 20, 21, 30)]
    assert chunk.line_numbers.tolist() == [i + 1 for i in kept]
    np.testing.assert_array_equal(y, FRAME.y[kept])
    np.testing.assert_array_equal(X[:, 0], FRAME.amount[kept])


@pytest.mark.parametrize("size", [1, 64, 400])
def test_reading_goes_on_from_the_end_of_any_chunk(size, tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", size)
    monkeypatch.setattr(text, "_FIRST", size)
    objects = FRAME[:14].to_dict("records")
    path = write(tmp_path / "a.jsonl", [*objects, "", *objects])
    X, y, chunks = rows(JsonLinesSource([path], label="y"))
    assert len(chunks) >= 5
    assert y.tolist() == [*FRAME.y[:14]] * 2
    done = 0
    for chunk in chunks[:-1]:
        done += len(chunk.labels)
        rest = rows(JsonLinesSource([path], label="y"), chunk.end)
        np.testing.assert_array_equal(rest[0], X[done:])


cell = st.one_of(
    *(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.text(max_size=4)),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(), max_size=2),
)
objects = st.lists(st.dictionaries(st.sampled_from("abc"), cell), min_size=1)


@settings(deadline=None, max_examples=200)
@given(objects)
def test_any_objects_are_read(lines):
    data = "\n".join(map(json.dumps, lines)).encode()
    found = split(np.frombuffer(data, np.uint8))
    batch, good, problems = parse(found, find_types(found), list("abc"))
    lists = [any(isinstance(v, list) for v in line.values()) for line in lines]
    assert [*problems] == np.flatnonzero(lists).tolist()
    assert good.tolist() == np.flatnonzero(~np.array(lists)).tolist()
    for name in "abc":
        for value, row in zip(batch.column(name).to_pylist(), good, strict=True):
            expected = lines[row].get(name)
            if isinstance(expected, str) or expected is None:
                assert value == expected
            elif isinstance(value, str):
                assert value.strip() == json.dumps(expected)
            else:
                assert value == pytest.approx(expected)


def test_train_and_score_by_a_pipe(tmp_path):
    path = write(tmp_path / "a.jsonl", records())
    model = tmp_path / "m.aucmax"
    invoke("train", path, "-o", model, "--label", "y", "--algorithm", "LeastSquaresAUC")
    result = invoke("score", model, "-", input='{"amount": 3.5, "score": 1}\n{}\n')
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["amount"] == 3.5
    assert first["score"] == 1
    assert isinstance(first["score_2"], float)
    assert isinstance(second["score"], float)


def test_other_data_are_an_error(tmp_path):
    path = write(tmp_path / "a.jsonl", records())
    recipe = JsonLinesSource([path], label="y").recipe()
    other = write(tmp_path / "b.jsonl", [{"q": 1}, {"q": 2}])
    with pytest.raises(ValueError, match="none of the columns that the model needs"):
        list(JsonLinesSource([other], recipe=recipe, labelled=False).batches())
    some = write(tmp_path / "c.jsonl", [{"amount": 1.0}, {"amount": 2.0}])
    source = JsonLinesSource([some], recipe=recipe, labelled=False)
    with pytest.warns(UserWarning, match="have no key 'when', 'kind'"):
        list(source.batches())


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("nested", [False, True])
def test_the_keys_of_the_model_count_wherever_they_first_appear(
    size, nested, tmp_path, monkeypatch
):
    def line(a, b=None, c=None):
        inner = {} if b is None else {"b": b}
        found = {"a": a, "u": {"i": 1, **inner}} if nested else {"a": a, **inner}
        return found if c is None else {**found, "c": c}

    known = [line(float(k % 7), float(k % 5), "xy"[k % 2]) for k in range(N)]
    for k in range(0, N, 3):  # missing values are known
        known[k] = line(float(k % 7))
    recipe = JsonLinesSource([write(tmp_path / "a.jsonl", known)]).recipe()
    monkeypatch.setattr(json_lines, "BLOCK", size)
    later = [line(1.0), line(2.0, 3.5), line(3.0, -4.0, "y"), line(4.0, "2.5", "x")]
    monkeypatch.setattr(text, "BLOCK", size)
    monkeypatch.setattr(text, "_FIRST", size)
    found = []
    for some in (later, later[::-1], *([one] for one in later)):
        path = write(tmp_path / "b.jsonl", some)
        source = JsonLinesSource([path], recipe=recipe)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            batches = list(source.batches())
        found.append(np.vstack([batch.rows.toarray() for batch in batches]))
    b = source.feature_names().index("u.b" if nested else "b")
    assert found[0][1:, b].tolist() == [3.5, -4.0, 2.5]
    np.testing.assert_array_equal(found[1], found[0][::-1])
    np.testing.assert_array_equal(np.vstack(found[2:]), found[0])


MALFORMED = {
    "deep list": '{"amount":1,"kind":"red","q":' + "[" * 30_000 + "]" * 30_000 + "}",
    "deep object": '{"amount":1,"q":' + '{"q":' * 600 + "1" + "}" * 601,
    "deep and not closed": '{"q":' + "[" * 30_000,
    "surrogate": '{"amount":1,"kind":"cut \\ud83d","when":"2024-01-01"}',
    "surrogate in a key": '{"amount":1,"\\ude00":1}',
    "list": '{"amount":[1],"kind":"red"}',
    "empty list": '{"amount":1,"kind":[]}',
    "two objects": '{"amount":1} {"amount":2}',
    "text": "amount: 1",
}
FINE = [
    '{"amount":2,"kind":"red","q":' + "[" * 30 + "]" * 30 + "}",
    '{"amount":2,"kind":"' + "[{" * 50_000 + '\\"","when":"2024-01-01"}',
    '{"amount":2,"kind":"\\ud83d\\ude00"}',
    '{"amount":' + "9" * 300 + ',"kind":"red"}',
]


@pytest.mark.parametrize("name", MALFORMED)
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_line_that_is_not_one_row_is_malformed_and_the_others_are_read(
    name, place, tmp_path
):
    objects = FRAME.drop(columns="y").to_dict("records")
    recipe = JsonLinesSource([write(tmp_path / "a.jsonl", objects)]).recipe()
    lines = [*FINE]
    lines.insert(place, MALFORMED[name])
    (tmp_path / "b.jsonl").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = JsonLinesSource([str(tmp_path / "b.jsonl")], recipe=recipe).batches()
        (batch,) = batches
    assert [bad.line for bad in batch.malformed] == [place + 1]
    assert batch.rows.shape[0] == len(FINE)
    assert batch.rows.toarray()[:3, 0].tolist() == [2.0] * 3


def test_objects_on_one_line_and_over_two_lines_do_not_cancel_out(tmp_path):
    objects = records()
    lines = [json.dumps(one) for one in objects]
    lines[7] += lines[8]
    lines[8:10] = lines[9].split(", ", 1)
    lines[8] += ","
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    X, _, (chunk,) = rows(JsonLinesSource([str(tmp_path / "a.jsonl")], label="y"))
    assert [bad.line for bad in chunk.malformed] == [8, 9, 10]
    kept = [k for k in range(N) if k not in (7, 8, 9)]
    assert chunk.line_numbers.tolist() == [k + 1 for k in kept]
    np.testing.assert_array_equal(X[:, 0], FRAME.amount[kept])


def test_a_column_of_lists_is_an_error_with_a_remedy(tmp_path):
    lines = [{"tags": ["p"] * (k % 3), **one} for k, one in enumerate(records())]
    path = write(tmp_path / "a.jsonl", lines)
    with pytest.raises(ValueError, match=r"column 'tags' has the type list.*drop=tags"):
        JsonLinesSource([path], label="y").schema  # noqa: B018
    X, *_ = rows(JsonLinesSource([path], label="y", drop=["tags"]))
    other = write(tmp_path / "b.jsonl", records())
    np.testing.assert_array_equal(X, rows(JsonLinesSource([other], label="y"))[0])


def test_malformed_lines_of_a_pipe_are_skipped(tmp_path):
    path = write(tmp_path / "a.jsonl", records())
    model = tmp_path / "m.aucmax"
    invoke("train", path, "-o", model, "--label", "y", "--algorithm", "LeastSquaresAUC")
    lines = [*MALFORMED.values(), FINE[0]]
    score = ("score", model, "-", "--on-bad-line", "skip")
    result = invoke(*score, input="\n".join(lines) + "\n")
    assert f"{len(MALFORMED)} malformed lines" in result.stderr
    assert isinstance(json.loads(result.stdout.splitlines()[-1])["score"], float)
