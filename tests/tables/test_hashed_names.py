"""Words behind hashed features: the names of weights."""

import json

import numpy as np
import pandas as pd
import pytest

from aucmax.io.csv_source import CsvSource
from aucmax.io.recipe import check_recipe
from aucmax.tables.labels import Task
from helpers.commands import invoke
from helpers.frame_source import FrameSource

RNG = np.random.default_rng(0)
LABELS = RNG.random(200) < 0.5
WORDS = {True: "Refund now", False: "viele Grüße"}
FRAME = pd.DataFrame(
    {
        "body": [f"it is {WORDS[y]} x {i}" for i, y in enumerate(LABELS.tolist())],
        "job": RNG.choice(["clerk", "nurse"], 200),
        "y": np.where(LABELS, "yes", "no"),
    }
)


@pytest.mark.parametrize("form", ["csv", "frame"])
@pytest.mark.parametrize("encode", ["auto", "hash"])
def test_words_are_those_that_are_hashed_there(form, encode, tmp_path):
    options = {"label": "y", "text": ["body"], "encode": encode}
    if form == "csv":
        FRAME.to_csv(tmp_path / "a.csv", index=False)
        source = CsvSource([str(tmp_path / "a.csv")], **options)
    else:
        source = FrameSource(FRAME, **options)
    (chunk,) = source.batches()
    words = source.words(range(source.n_features))
    found = {word.name: word for word in words}
    assert {"body: refund", "body: grüße", "body: it"} <= found.keys()
    assert "body: x" not in found  # words have two letters
    for name, has in (("refund", LABELS), ("grüße", ~LABELS), ("it", LABELS | True)):
        word = found[f"body: {name}"]
        column = word.sign * chunk.rows[:, [word.feature]].toarray().ravel()
        assert (column[has] >= 1.0).all()
    hashed = encode == "hash"
    assert ("job=clerk" in found) == hashed
    assert source.words([found["body: it"].feature]) == [found["body: it"]]
    assert source.words([0] if not hashed else []) == []


def test_a_frequent_word_comes_before_a_rare_one():
    source = FrameSource(FRAME, label="y", text=["body"], hash_size=1)
    first = source.n_features - 1
    (word,) = source.words([first])
    assert word.name in ("body: it", "body: is")


def test_the_weight_of_a_word_has_its_sign(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    model = tmp_path / "m.aucmax"
    train = ("train", tmp_path / "a.csv", "-o", model, "--label", "y", "--input")
    result = invoke(*train, "text=body", "--algorithm", "SPAM")
    assert result.exit_code == 0, result.stderr
    weights = json.loads(invoke("info", model, "--json").stdout)["largest_weights"]
    known = {entry["feature"]: entry["weight"] for entry in weights}
    assert known["body: refund"] > 0.0
    assert known["body: grüße"] < 0.0
    assert "body: refund" in invoke("info", model).stdout


@pytest.mark.parametrize("words", [7, [7], [{"feature": 1}]])
def test_words_out_of_a_file_are_checked(words):
    source = FrameSource(FRAME, label="y")
    recipe = {"input": source.recipe(), "task": Task.of(["yes"], ["no"]).to_json()}
    check_recipe(recipe)
    with pytest.raises(ValueError, match="its recipe has words"):
        check_recipe(recipe | {"words": words})
