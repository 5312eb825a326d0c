"""A small CSV table, a model trained on it, and a runner for commands."""

import csv
import inspect
import io

import numpy as np
from typer.testing import CliRunner

from aucmax.cli.main import app
from aucmax.workflows.plan import Plan
from aucmax.workflows.train import train

HEADER = "age,town,income,clicked"

# Before 8.2, click mixed stdout and stderr by default; now it never does.
_mixes = "mix_stderr" in inspect.signature(CliRunner).parameters
_RUNNER = CliRunner(mix_stderr=False) if _mixes else CliRunner()


def invoke(*arguments, input=None):
    return _RUNNER.invoke(app, [str(word) for word in arguments], input=input)


def table(n=300, seed=0):
    """Return lines of a table; some towns contain a delimiter, quote or line break."""
    rng = np.random.default_rng(seed)
    towns = ['"Bath, Somerset"', '"the ""Smoke"""', "York", '"Stoke\non Trent"']
    age, town, income = (
        rng.integers(18, 80, n),
        rng.integers(0, 4, n),
        np.round(rng.lognormal(10, 1, n), 2),
    )
    score = age / 20 + np.log(income) + 0.5 * town + rng.normal(0, 1.5, n)
    clicked = np.where(score > np.quantile(score, 0.8), "yes", "no")
    return [
        f"{a},{towns[t]},{i!r},{c}"
        for a, t, i, c in zip(
            age.tolist(), town.tolist(), income.tolist(), clicked.tolist(), strict=True
        )
    ]


def write_table(path, lines, header=HEADER, end="\n"):
    path.write_bytes("".join(line + end for line in [header, *lines]).encode())
    return path


def train_model(folder):
    """Train a model on the table and return its path."""
    data = write_table(folder / "train.csv", table())
    model = folder / "model.aucmax"
    reader = {"label": "clicked", "encode": "onehot", "missing": "error"}
    train(Plan([str(data)], "LeastSquaresAUC", passes=1, reader=reader), model)
    return model


def fields(text, delimiter=","):
    """Return the rows of a table as dictionaries."""
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
