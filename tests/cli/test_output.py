"""Output for people and for programs: width, colours, JSON, completion."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from aucmax.cli.main import app
from helpers.commands import invoke, train_model

COMMANDS = {
    "train": "train train.csv -o new.aucmax --label clicked --algorithm BAM",
    "stream": "train train.csv -o s.aucmax --label clicked --algorithm AUCStream",
    "evaluate": "evaluate model.aucmax train.csv --by town",
    "score": "score model.aucmax train.csv -o scores.csv",
    "info": "info model.aucmax",
    "compare": "compare train.csv --label clicked --algorithm BAM --folds 2",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("output")
    train_model(path)
    return path


@pytest.fixture
def here(folder, monkeypatch):
    """Work in the folder, so that messages have short names."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_json_is_all_there_is(here, command):
    result = invoke(*command.split(), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_output_fits_80_columns(here, command):
    result = invoke(*command.split())
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_help_fits_80_columns(here):
    names = [one.name or one.callback.__name__ for one in app.registered_commands]
    for words in ([], *([name] for name in names)):
        text = invoke(*words, "--help").stdout
        assert max(map(len, text.splitlines())) <= 80, words


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_errors_are_wrapped_between_words_in_a_terminal(here, monkeypatch):
    from aucmax.cli import errors

    text = "Error: " + "cannot parse " * 12 + "some/" * 20 + "file.csv"
    monkeypatch.setattr(sys, "stderr", _Terminal())
    errors._say(text)
    *lines, path = sys.stderr.getvalue().splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80
    assert path == "some/" * 20 + "file.csv"


def test_errors_are_one_line_without_a_terminal(here):
    result = invoke("train", "none.csv", "-o", "x.aucmax", "--label", "y")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


def run(command, **env):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "aucmax", *command.split()],
        env=os.environ | env,
        capture_output=True,
        text=True,
        check=True,
    )


def test_no_color(here):
    note = COMMANDS["train"] + " --resume"  # a note in yellow: there is no checkpoint
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[33m" in run(note, **terminal).stderr
    assert "\x1b[33m" not in run(note, NO_COLOR="1", **terminal).stderr


COMPLETE = """
eval "$(aucmax --show-completion)"
COMP_WORDS=(aucmax {words}) COMP_CWORD={last}
_aucmax_completion aucmax
printf '%s\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ev", ["evaluate"]),
        ("train --al", ["--algorithm"]),
        ("train --algorithm SP", ["SPAM", "SPDAM"]),
        ("evaluate mod", [""]),  # bash completes names of files itself
    ],
)
def test_bash_completes(tmp_path, words, found):
    program = tmp_path / "aucmax"
    start = "from aucmax.cli.main import app"
    program.write_text(f"#!{sys.executable}\n{start}\napp(prog_name='aucmax')\n")
    program.chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", COMPLETE.format(words=words, last=len(words.split()))],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == found
