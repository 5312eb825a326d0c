"""Terminal output: text, tables and progress bars."""

import io
from time import perf_counter

import numpy as np
import pytest
from rich.console import Console

from aucmax.cli import terminal as module
from aucmax.cli.terminal import (
    ReadingBar,
    Screen,
    columns_table,
    duration,
    leaderboard,
    table,
)
from aucmax.stream.leaderboard import StreamLeaderboardEntry
from helpers.commands import invoke


@pytest.fixture(autouse=True)
def able_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (185, "3:05"),
        (7800, "2:10:00"),
    ],
)
def test_duration(time, words):
    assert duration(time) == words


def test_step_without_a_terminal_prints_a_line(capsys):
    shown = Screen()
    with shown.step("Training", 10) as bar:
        bar.show(10)
    out, err = capsys.readouterr()
    assert out.startswith("Training: 0.")
    assert err == ""


def test_quiet_prints_nothing_to_standard_output(capsys):
    shown = Screen(quiet=True)
    with shown.step("Training"):
        shown.print("words")
        shown.show(table("name", "number"))
    shown.warn("careful")
    assert capsys.readouterr() == ("", "careful\n")


def test_text_is_not_markup(capsys):
    Screen().print("[bold] 3:smile:")
    assert capsys.readouterr().out == "[bold] 3:smile:\n"


WILD = "a\x1b]52;c;QQ==\x07b\x9b2J\u202e"


def test_control_characters_are_escaped(capsys):
    grid = table("name", "number")
    grid.add_row(WILD, "1")
    shown = Screen()
    shown.show(grid)
    shown.print(WILD)
    shown.warn(WILD)
    for text in capsys.readouterr():
        assert r"a\x1b]52;c;QQ==" in text
        assert all(c.isprintable() or c == "\n" for c in text)


def test_control_characters_from_files_are_escaped(tmp_path):
    data, model = tmp_path / "a.csv", tmp_path / "m.aucmax"
    rng = np.random.default_rng(0)
    rows = [
        f"{v:.3f},{w},{int(v > 0)}"
        for v, w in zip(
            rng.standard_normal(60), rng.choice(["x", f"y{WILD}"], 60), strict=True
        )
    ]
    data.write_text(f"{WILD},c,y\n" + "\n".join(rows) + "\n")
    train = ("train", data, "-o", model, "--label", "y", "--algorithm", "BAM")
    for command in (train, ("info", model), ("evaluate", model, data, "--by", "c")):
        result = invoke(*command)
        assert result.exit_code == 0
        assert WILD[:2] not in result.stdout + result.stderr
        assert r"\x1b" in result.stdout


def test_table_of_many_columns_takes_linear_time():
    facts = {"distinct": 5, "missing": 0, "rows": 10}
    roles = [{"name": f"c{i}", "role": "number", **facts} for i in range(40_000)]
    start = perf_counter()
    assert columns_table(roles) is None
    assert perf_counter() - start < 2.0


@pytest.fixture
def terminal(monkeypatch):
    """Return the output of a terminal of 100 columns."""
    seen = io.StringIO()

    def console(**_):
        return Console(file=seen, force_terminal=True, width=100)

    monkeypatch.setattr(module, "Console", console)
    return seen


def test_reading_bar_shows_progress(terminal, tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(1_000_000))
    with ReadingBar([str(file)], passes=2, label="Training") as bar:
        bar(500_000, 1_234, 1, 0.75)
    for words in ("Training", "75 %", "1,234 rows", "AUC 0.7500"):
        assert words in terminal.getvalue()


def test_no_line_of_progress_before_there_are_rows(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "_LOG_SECONDS", 0.0)
    file = tmp_path / "data"
    file.write_bytes(bytes(1000))
    with ReadingBar([str(file)], logs=True) as bar:
        bar(0, 0)
        assert capsys.readouterr().err == ""
        bar(500, 10)
        assert "Reading: 10 rows" in capsys.readouterr().err


def test_bar_pulses_after_reading(terminal, tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(1_000_000))
    with ReadingBar([str(file)]) as bar:
        bar(1_000_000, 1_234)
        before = len(terminal.getvalue())
        bar.pulse("Fitting BAMCV")
    assert "Fitting BAMCV" in terminal.getvalue()[before:]
    assert "%" not in terminal.getvalue()[before:].rpartition("Fitting")[2]


def test_reading_bar_of_a_pipe_has_no_percentage(terminal):
    with ReadingBar(["-"]) as bar:
        bar(500_000, 1_234)
    assert "1,234 rows" in terminal.getvalue()
    assert "left" not in terminal.getvalue()
    assert "%" not in terminal.getvalue()


def test_bar_is_not_shown_if_not_wanted(terminal, capsys):
    with ReadingBar(["-"], shown=False) as bar:
        bar(500_000, 1_234)
    assert terminal.getvalue() == ""


def test_leaderboard_is_shown_below_the_bar(terminal):
    lines = [
        StreamLeaderboardEntry("OAM(C=6.0)", 40_000, 0.81234, 0.00321, 0.0, 1.0, True),
        StreamLeaderboardEntry("SPAM()", 16_384, 0.79, 0.0041, 0.0123, 0.0, False),
    ]
    with ReadingBar(["-"]) as bar:
        bar(500_000, 1_234)
        bar.table = leaderboard([line._asdict() for line in lines])
    words = terminal.getvalue()
    for word in ("OAM(C=6.0)", "0.8123 ± 0.0032", "100 %", "0.0123", "out"):
        assert word in words
