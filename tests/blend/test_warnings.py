"""Warnings of a blend name options as in Python or on the command line."""

import shlex

import numpy as np
import pandas as pd
import pytest

from aucmax import BAM, AUCClassifier
from aucmax.core.validation import DataWarning
from helpers.commands import invoke

TRAIN = "--label", "y", "--algorithm", "AUCClassifier", "--param", "members=null"
RNG = np.random.default_rng(0)
N = 300
Y = RNG.random(N) < 0.3
DAY = np.datetime64("2024-01-01") + np.arange(N)
LEAKY = pd.DataFrame(
    {
        "day": DAY,
        "the leak": Y + 0.01 * RNG.normal(size=N),
        "x": RNG.normal(size=N),
    }
)


def told(text, words):
    """Return the line with these words."""
    (line,) = [line for line in text.splitlines() if words in line]
    return line


def test_columns_to_leave_out():
    model = AUCClassifier([BAM()], time="day", random_state=0)
    with pytest.warns(DataWarning) as caught:
        model.fit(LEAKY, Y)
    text = "\n".join(str(one.message) for one in caught)
    assert told(text, "nearly alone").endswith("leave it out: drop='the leak'.")
    model.set_params(drop=["the leak"]).fit(LEAKY, Y)  # as it was said


def test_columns_to_leave_out_on_the_command_line(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.aucmax"
    LEAKY.assign(y=Y.astype(int)).to_csv(path, index=False)
    result = invoke("train", path, "-o", out, *TRAIN, "--time", "day")
    assert result.exit_code == 0, result.stderr
    line = told(result.stderr, "nearly alone")
    assert line.endswith("leave it out: drop='the leak'.")
    option = shlex.split(line.partition("leave it out: ")[2].removesuffix("."))
    again = invoke(
        "train", path, "-o", out, *TRAIN, "--time", "day", "--input", *option
    )
    assert again.exit_code == 0, again.stderr
    assert "nearly alone" not in again.stderr


def test_copies(tmp_path):
    rows = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.normal(size=N)})
    frame = pd.concat([rows, rows[:60]], ignore_index=True)
    y = np.append(Y, Y[:60])
    with pytest.warns(DataWarning, match="observations, pass cv=StratifiedKFold"):
        AUCClassifier([BAM()], random_state=0).fit(frame, y)
    every_fifth = [(np.arange(360) % 5 != k, np.arange(360) % 5 == k) for k in range(5)]
    cv = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in every_fifth]
    shuffled = RNG.permutation(360)
    with pytest.warns(DataWarning, match="in one fold by cv, groups or group"):
        AUCClassifier([BAM()], cv=cv, random_state=0).fit(
            frame.iloc[shuffled], y[shuffled]
        )
    path = tmp_path / "t.csv"
    frame.assign(y=y.astype(int)).to_csv(path, index=False)
    result = invoke("train", path, "-o", tmp_path / "m.aucmax", *TRAIN)
    assert result.exit_code == 0, result.stderr
    line = told(result.stderr, "treated as copies")
    assert "counts distinct rows." in line
