"""Words for missing values and signs of decimals that only the user knows."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from aucmax.io.arrow_source import ArrowSource
from aucmax.io.csv_source import CsvSource
from aucmax.io.recipe import check_recipe
from aucmax.tables.labels import Task
from helpers.commands import invoke
from helpers.frame_source import FrameSource

N = 120
RNG = np.random.default_rng(0)
NA = ("unknown", "-999", "not at all known", "é")


def cycle(*values):
    return [values[i % len(values)] for i in range(N)]


FRAME = pd.DataFrame(
    {
        "age": cycle("31", "-999", "28", "unknown", "-999.0"),
        "job": cycle("clerk", "not at all known", "nurse", "é"),
        "pay": cycle("12%", "unknown", "3%"),
        "x": [f"{value:.3f}" for value in RNG.normal(size=N)],
        "y": cycle("no", "yes", "no"),
    }
)


def typed(frame):
    """Return it with numbers as numbers, where that is possible."""
    return frame.assign(x=frame["x"].astype(float))


def csv(frame, folder, **options):
    frame.to_csv(folder / "a.csv", index=False)
    return CsvSource([str(folder / "a.csv")], label="y", **options)


def parquet(frame, folder, **options):
    typed(frame).to_parquet(folder / "a.parquet")
    return ArrowSource([str(folder / "a.parquet")], label="y", **options)


def pandas(frame, folder, **options):
    return FrameSource(typed(frame), label="y", **options)


def dense(source):
    parts = [chunk.rows for chunk in source.batches()]
    return sparse.vstack(parts).toarray()


@pytest.mark.parametrize("form", [csv, parquet, pandas])
def test_words_of_ones_own_are_missing_values(form, tmp_path):
    known = FRAME.replace([*NA, "-999.0"], "")
    source = form(known, tmp_path)
    roles, names, expected = source.schema.roles, source.feature_names(), dense(source)
    missing = {role["name"]: (role["role"], role["missing"]) for role in roles}
    assert missing["age"] == ("number", 72)
    assert missing["job"] == ("category", 60)
    assert missing["pay"] == ("number", 40)
    source = form(FRAME, tmp_path, na=NA)
    assert source.schema.roles == roles
    assert source.feature_names() == names
    np.testing.assert_array_equal(dense(source), expected)
    again = form(FRAME, tmp_path, recipe=source.recipe())  # as a model reads other data
    np.testing.assert_array_equal(dense(again), expected)


@pytest.mark.parametrize("form", [csv, parquet])
def test_they_are_bad_lines_if_nothing_may_be_missing(form, tmp_path):
    frame = FRAME.assign(age=cycle("31", "28", "25", "-999"))[["age", "x", "y"]]
    options = {"na": ["-999"], "missing": "error", "keep_text": True}
    (chunk,) = form(frame, tmp_path, **options).batches()
    assert len(chunk.malformed) == N // 4
    assert chunk.malformed[0].column == "age"
    assert re.search("missing.*: missing=zero", chunk.malformed[0].problem)
    assert chunk.rows.shape[0] == len(chunk.labels) == N - N // 4


def test_numbers_of_arrow_and_their_mean(tmp_path):
    frame = pd.DataFrame({"x": np.tile([1.0, -999.0, 3.0], 40), "y": [0, 1] * 60})
    frame.to_parquet(tmp_path / "a.parquet")
    options = {"label": "y", "na": ["-999"], "missing": "impute"}
    source = ArrowSource([str(tmp_path / "a.parquet")], **options)
    assert source.schema.means == [2.0]
    (chunk,) = source.batches()
    assert sorted(set(chunk.rows[:, 0])) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("sign", "cells", "expected"),
    [
        (",", cycle("1,234", "2,500"), 1.234),
        (".", cycle("1,234", "2,500"), 1234.0),
        (None, cycle("1,234", "2,500"), 1234.0),
        (",", ["1,5", *cycle("2", "3")[1:]], 1.5),  # hardly any has a comma
        (".", cycle("1,234.5", "950"), 1234.5),
    ],
)
def test_the_sign_of_decimals(sign, cells, expected, tmp_path):
    frame = pd.DataFrame({"n": cells, "y": cycle("no", "yes", "no")})
    for write in ({"sep": ";"}, {"sep": ";", "header": False}, {"sep": ","}):
        frame.to_csv(tmp_path / "a.csv", index=False, **write)
        label = "1" if "header" in write else "y"
        options = {"label": label, "decimal": sign}
        if sign != ",":  # else the commas look like delimiters
            options["delimiter"] = write["sep"]
        (chunk,) = CsvSource([str(tmp_path / "a.csv")], **options).batches()
        assert chunk.rows[0, 0] == expected


def test_what_makes_no_sense_is_said(tmp_path):
    for wrong in ({"na": [""]}, {"na": ["x" * 300]}, {"na": [7]}, {"decimal": "x"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            csv(FRAME, tmp_path, **wrong)
    source = csv(FRAME, tmp_path, na=NA)
    recipe = {"input": source.recipe(), "task": Task.of(["yes"], ["no"]).to_json()}
    check_recipe(recipe)
    recipe["input"]["na"] = [""]
    with pytest.raises(ValueError, match="its recipe has na"):
        check_recipe(recipe)


def test_from_the_command_line(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    model, output = tmp_path / "m.aucmax", tmp_path / "scored.csv"
    train = ("train", tmp_path / "a.csv", "-o", model, "--label", "y")
    train += ("--algorithm", "LeastSquaresAUC", "--input")
    result = invoke(*train, f"na={','.join(NA)}")
    assert result.exit_code == 0, result.stderr
    assert invoke("score", model, tmp_path / "a.csv", "-o", output).exit_code == 0
    told = pd.read_csv(output, dtype=str, keep_default_na=False)
    assert told["age"].tolist() == FRAME["age"].tolist()
