"""What people see, in a terminal and without one."""

import io

import pytest
from rich.console import Console

from aucmax.cli import screen
from aucmax.cli.screen import Screen, reading, seconds, table
from aucmax.front.stream import Standing


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
def test_times_as_people_say_them(time, words):
    assert seconds(time) == words


def test_without_a_terminal_a_step_is_a_line(capsys):
    shown = Screen()
    with shown.step("Training", 10) as advance:
        advance(10)
    out, err = capsys.readouterr()
    assert out.startswith("Training: 0.")
    assert err == ""


def test_quiet_leaves_standard_output_alone(capsys):
    shown = Screen(quiet=True)
    with shown.step("Training"):
        shown.print("words")
        shown.show(table("name", "number"))
    shown.warn("careful")
    assert capsys.readouterr() == ("", "careful\n")


def test_text_is_not_markup(capsys):
    Screen().print("[bold] 3:smile:")
    assert capsys.readouterr().out == "[bold] 3:smile:\n"


@pytest.fixture
def terminal(monkeypatch):
    """Return what a terminal of 100 columns gets to see."""
    seen = io.StringIO()

    def console(**_):
        return Console(file=seen, force_terminal=True, width=100)

    monkeypatch.setattr(screen, "Console", console)
    return seen


def test_a_terminal_sees_how_far_reading_has_come(terminal, tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(1_000_000))
    with reading([str(file)], passes=2, label="Training") as meter:
        meter(500_000, 1_234, 1, 0.75)
    for words in ("Training", "75 %", "1,234 rows", "AUC 0.7500"):
        assert words in terminal.getvalue()


def test_a_terminal_sees_what_goes_on_after_reading(terminal, tmp_path):
    file = tmp_path / "data"
    file.write_bytes(bytes(1_000_000))
    with reading([str(file)]) as meter:
        meter(1_000_000, 1_234)
        before = len(terminal.getvalue())
        meter.label("Fitting BAMCV")
    assert "Fitting BAMCV" in terminal.getvalue()[before:]
    assert "%" not in terminal.getvalue()[before:].rpartition("Fitting")[2]


def test_nobody_knows_how_long_a_pipe_is(terminal):
    with reading(["-"]) as meter:
        meter(500_000, 1_234)
    assert "1,234 rows" in terminal.getvalue()
    assert "left" not in terminal.getvalue()
    assert "%" not in terminal.getvalue()


def test_no_bar_without_a_terminal_or_when_not_wanted(terminal, capsys):
    with reading(["-"], shown=False) as meter:
        meter(500_000, 1_234)
    assert terminal.getvalue() == ""


def test_a_terminal_sees_how_a_race_stands(terminal):
    lines = [
        Standing("OAM(C=6.0)", 40_000, 0.81234, 0.00321, 0.0, 1.0, True),
        Standing("SPAM()", 16_384, 0.79, 0.0041, 0.0123, 0.0, False),
    ]
    with reading(["-"]) as meter:
        meter(500_000, 1_234)
        meter.board(lines)
    words = terminal.getvalue()
    for word in ("OAM(C=6.0)", "0.8123 ± 0.0032", "100 %", "0.0123", "out"):
        assert word in words
