"""The command line: help, errors and demo."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aucmax
from aucmax import BAM, AUCClassifier
from aucmax.blend.boosting import BoostedTrees
from aucmax.cli import demo, errors, info
from aucmax.cli.main import app
from helpers.commands import invoke

COMMANDS = app.registered_commands
SLOW = ("numba", "sklearn", "scipy", "numpy", "matplotlib")


def test_pandas_and_scipy_stats_are_imported_only_on_demand():
    code = (
        "import sys; from aucmax.cli.startup import import_scikit_learn\n"
        "import_scikit_learn(); import aucmax.workflows.train\n"
        "print('pandas' in sys.modules, 'scipy.stats._stats_py' in sys.modules)\n"
        "import pandas; import scipy.stats, scipy.stats.distributions\n"
        "from scipy.stats import rankdata; print(rankdata([3, 5, 4]).tolist())\n"
        "print(scipy.stats is sys.modules['scipy.stats'], scipy.stats.__file__[-3:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False False\n[1.0, 3.0, 2.0]\nTrue .py\n"


@pytest.mark.parametrize(
    "code",
    [
        "import aucmax",
        "import aucmax; dir(aucmax); aucmax.ESTIMATORS",
        "from aucmax.cli.main import app; app(['--help'], standalone_mode=False)",
        "from aucmax.cli.main import app\n"
        "for command in app.registered_commands:\n"
        "    verb = command.name or command.callback.__name__\n"
        "    app([verb, '-h'], standalone_mode=False)",
    ],
)
def test_nothing_slow_is_imported(code):
    check = f"import sys; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{check}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_m_aucmax_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "aucmax", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"aucmax {aucmax.__version__}\n"


def test_help_names_every_verb():
    result = invoke("--help")
    assert result.exit_code == 0
    assert "demo" in result.output
    assert "reproduce" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["demo", "--rows", "many"],
        ["demo", "--rows", "10"],
        ["demo", "--seed", "-1"],
        ["info", "--nonsense"],
    ],
)
def test_usage_errors_have_exit_code_2(arguments):
    assert invoke(*arguments).exit_code == 2


def test_interrupt_has_exit_code_130(monkeypatch, tmp_path):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    result = invoke("demo", "--output", str(tmp_path))
    assert result.exit_code == 130
    assert "Traceback" not in result.output


def test_output_folder_that_cannot_be_created_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    result = invoke("demo", "--output", str(tmp_path / "file" / "folder"))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("data.csv, line 3: x is no number"), "x is no number"),
        (ValueError("of two\nlines"), "of two lines"),
        (OSError(errno.ENOSPC, "No space left on device", "a.csv"), "a.csv: No space"),
        (FileNotFoundError(errno.ENOENT, "No such file", "a"), "a: No such file"),
        (OSError("words of our own"), "words of our own"),
        (ImportError("pip install 'aucmax[data]'"), "pip install 'aucmax[data]'"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_user_and_system_errors_are_reported_in_one_line(monkeypatch, error, line):
    def fail(*_):
        raise error

    monkeypatch.setattr(info, "run", fail)
    result = invoke("info", __file__)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert line in result.stderr
    assert result.stderr.count("\n") == 1
    # Raised outside the package: the message mentions --debug.
    assert ("--debug" in result.stderr) == (getattr(error, "filename", None) is None)


def test_errors_raised_by_aucmax_do_not_mention_debug(tmp_path):
    (tmp_path / "model").write_bytes(b"no model")
    with pytest.raises(ValueError, match="not an aucmax model file") as caught:
        aucmax.load(tmp_path / "model")
    assert errors._raised_here(caught.value)


@pytest.mark.parametrize("how", ["option", "environment"])
def test_debug_shows_the_traceback(monkeypatch, how):
    def fail(*_):
        raise ValueError("words")

    monkeypatch.setattr(info, "run", fail)
    if how == "environment":
        monkeypatch.setenv("AUCMAX_DEBUG", "1")
    result = invoke(*(["--debug"] if how == "option" else []), "info", __file__)
    assert isinstance(result.exception, ValueError)
    assert result.stderr == ""


def test_bugs_are_not_reported_as_user_errors(monkeypatch):
    def fail(*_):
        raise AssertionError("impossible")

    monkeypatch.setattr(info, "run", fail)
    assert isinstance(invoke("info", __file__).exception, AssertionError)


def test_closed_pipe_prints_nothing(monkeypatch):
    def fail(*_):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(info, "run", fail)
    result = invoke("info", __file__)
    assert result.exit_code == 1
    assert result.output == ""


@pytest.mark.parametrize(
    "verb", [command.name or command.callback.__name__ for command in COMMANDS]
)
def test_help_fits_a_screen(verb):
    result = invoke(verb, "-h")
    assert result.exit_code == 0
    lines = result.output.rstrip().splitlines()
    assert len(lines) <= (48 if verb == "train" else 40)
    assert max(map(len, lines)) <= 80
    assert lines == invoke(verb, "--help").output.rstrip().splitlines()


@pytest.fixture
def light(monkeypatch):
    """Replace the blend by a small one."""
    members = [BoostedTrees(10), BAM()]
    monkeypatch.setattr(
        demo, "new_blend", lambda seed: AUCClassifier(members, cv=2, random_state=seed)
    )
    monkeypatch.setattr(demo, "_TEST_ROWS", 20_000)


def test_demo_writes_json_a_model_and_a_figure(light, tmp_path):
    folder = tmp_path / "new" / "folder"
    options = ("--rows", "5000", "--seed", "1", "--json", "--output", str(folder))
    result = invoke("demo", *options)
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["version"] == aucmax.__version__
    assert 0 < report["compile_seconds"] <= report["seconds"]
    assert [split["seed"] for split in report["table"]] == [1, 2, 3]
    for split in report["table"]:
        assert (split["train_rows"], split["test_rows"]) == (3000, 3000)
        assert split["models"][0]["name"] == "AUCClassifier"
        for model in split["models"]:
            assert 0.6 < model["low"] <= model["auc"] <= model["high"] < 0.9
            assert 20 < model["found"] <= 100
    stream = report["stream"]
    assert (stream["train_rows"], stream["test_rows"]) == (5000, 20_000)
    assert 150 < stream["test_positives"] < 250
    assert [rows for rows, _ in stream["looks"]][-1] == 5000
    assert stream["looks"][-1][1] == pytest.approx(stream["models"][0]["auc"])
    table = demo.read_table()
    assert aucmax.load(report["model"]).predict_proba(table).shape == (6000, 2)
    assert Path(report["picture"]).read_bytes().startswith(b"\x89PNG")
    names = {"bank.aucmax", "demo.png"}
    assert {path.name for path in folder.iterdir()} == names


def test_demo_prints_text_and_runs_without_matplotlib(light, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    result = invoke("demo", "--rows", "5000", "--output", str(tmp_path))
    assert result.exit_code == 0
    for words in ("subscribe", "LightGBM", "It ranks", "30,000 at most", "calibrated"):
        assert words in result.output
    assert "pip install 'aucmax[plot]'" in result.output
    assert str(tmp_path / "bank.aucmax") in result.output
    assert not (tmp_path / "demo.png").exists()


def test_stream_is_as_described():
    X, y = (
        np.concatenate(parts)
        for parts in zip(*demo.rare_stream(120_000, seed=0, part=0), strict=True)
    )
    assert X.dtype == np.float32
    assert X.shape == (120_000, 24)
    assert 0.009 < y.mean() < 0.011
    spread = X.std(axis=0)
    assert spread.max() / spread.min() > 1e4
    again = np.concatenate([X for X, _ in demo.rare_stream(120_000, seed=0, part=0)])
    other = np.concatenate([X for X, _ in demo.rare_stream(120_000, seed=0, part=1)])
    np.testing.assert_array_equal(X, again)
    assert not np.array_equal(X, other)
    assert np.all(abs(X.mean(axis=0) - other.mean(axis=0)) < 0.05 * spread)
