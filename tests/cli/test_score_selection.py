"""``aucmax score`` with --probability, --top and --reasons."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.special import expit

import aucmax
from helpers.commands import fields, invoke, table, write_table

LINES = table(400, seed=5)


@pytest.fixture(scope="module")
def blend(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blend")
    data = write_table(folder / "train.csv", table(400, seed=4))
    out = folder / "blend.aucmax"
    result = invoke("train", data, "-o", out, "--label", "clicked")
    assert result.exit_code == 0, result.stderr
    return out


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("select") / "new.csv", LINES)


@pytest.fixture(scope="module")
def scores(blend, data):
    rows = fields(invoke("score", blend, data).stdout)
    return np.array([float(row["score"]) for row in rows])


def lines_of(text):
    """Return rows as dictionaries without the appended columns."""
    rows = fields(text)
    return [{k: row[k] for k in ("age", "town", "income", "clicked")} for row in rows]


def test_probabilities_are_those_of_python(blend, data, scores):
    rows = fields(invoke("score", blend, data, "--probability").stdout)
    found = np.array([float(row["probability"]) for row in rows])
    np.testing.assert_array_equal(found, expit(scores))
    frame = pd.read_csv(data)
    expected = aucmax.load(blend).predict_proba(frame)[:, 1]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_ranker_has_no_probabilities(model, data):
    result = invoke("score", model, data, "--probability")
    assert result.exit_code != 0
    assert "--probability" in result.stderr


@pytest.mark.parametrize("k", [1, 25, 10_000])
def test_the_highest_rows_best_first(blend, data, scores, k):
    whole = lines_of(invoke("score", blend, data).stdout)
    order = np.lexsort((np.arange(scores.size), -scores))[:k]
    out = invoke("score", blend, data, "--top", k).stdout
    assert lines_of(out) == [whole[i] for i in order]
    assert [float(row["score"]) for row in fields(out)] == scores[order].tolist()


def test_many_small_batches_and_files_give_the_same_rows(blend, data, tmp_path):
    parts = [write_table(tmp_path / f"{k}.csv", LINES[k::8]) for k in range(8)]
    lines = [line for k in range(8) for line in LINES[k::8]]
    one = write_table(tmp_path / "all.csv", lines)
    whole = invoke("score", blend, one, "--top", 9).stdout
    assert invoke("score", blend, *parts, "--top", 9).stdout == whole
    other = write_table(tmp_path / "other.csv", ["1,x,2"], "income,town,age")
    result = invoke("score", blend, parts[0], other, "--top", 9)
    assert result.exit_code != 0
    assert "other columns" in result.stderr


def test_other_formats(blend, data, tmp_path):
    frame = pd.read_csv(data)
    expected = lines_of(invoke("score", blend, data, "--top", 5).stdout)
    frame.to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "top.parquet"
    options = "--top", 5, "--probability", "--reasons", 2
    result = invoke("score", blend, tmp_path / "new.parquet", "-o", out, *options)
    assert result.exit_code == 0, result.stderr
    found = pq.read_table(out).to_pylist()
    assert [str(row["age"]) for row in found] == [row["age"] for row in expected]
    assert set(found[0]) >= {"score", "probability", "reasons"}
    frame.to_json(tmp_path / "new.jsonl", orient="records", lines=True)
    text = invoke("score", blend, tmp_path / "new.jsonl", *options).stdout
    found = [json.loads(line) for line in text.splitlines()]
    assert [str(row["age"]) for row in found] == [row["age"] for row in expected]
    assert "income" in found[0]["reasons"]


def test_reasons_are_the_columns_that_matter(blend, data):
    out = fields(invoke("score", blend, data, "--top", 3, "--reasons", 3).stdout)
    for row in out:
        names = {part.rsplit(" ", 1)[0] for part in row["reasons"].split("; ")}
        assert names <= {"age", "town", "income"}
        first = float(row["reasons"].split("; ")[0].rsplit(" ", 1)[1])
        assert first > 0.0  # the highest rows have reasons for being high


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reasons", "2"], "add --top K"),
        (["--top", "0"], "--top"),
    ],
)
def test_errors(blend, data, options, message):
    result = invoke("score", blend, data, *options)
    assert result.exit_code != 0
    assert message in result.stderr
