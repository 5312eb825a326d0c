"""Published values of the papers."""

from csv import DictReader
from pathlib import Path

import pytest

from aucmax_reproduction import papers

RESULTS = Path(__file__).parents[3] / "shared" / "papers" / "results.csv"


def test_all_cells_are_there():
    assert len(papers.every()) == 1696
    assert len(papers.sources()) == 5
    (cell,) = papers.cells("gao2013-opauc", ["2"], ["german"], ["OAMseq"])
    assert (cell.mean, cell.std) == (0.7747, 0.0411)
    assert (cell.significance, cell.copied) == (1, False)
    shares = [cell for cell in papers.every() if cell.metric != papers.SECONDS]
    assert all(0.0 < cell.mean <= 1.0 for cell in shares)
    copied = papers.cells("natole2018-spam", algorithms=["OPAUC"])
    assert copied
    assert all(cell.copied for cell in copied)


def test_cells_equal_the_transcript():
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name}, the papers' tables, is not here")
    with open(RESULTS) as file:
        for row, cell in zip(DictReader(file), papers.every(), strict=True):
            assert list(row.values())[:5] == list(cell[:5])
            assert float(row["mean"]) == cell.mean
            assert cell.std == (float(row["std"]) if row["std"] else None)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (["gao2014"], "Unknown source 'gao2014'. Use one of gao2013-opauc, "),
        (["gao2013-opauc", ["3"]], "has no table '3'. Use one of 2, 4"),
        (
            ["gao2013-opauc", ["2"], ["heart"]],
            "no dataset 'heart'. Use one of diabetes",
        ),
        (
            ["gao2013-opauc", ["2"], [], ["SPAM"]],
            "no algorithm 'SPAM'. Use one of OPAUC",
        ),
    ],
)
def test_errors_name_what_is_not_published(wanted, words):
    with pytest.raises(ValueError, match=words):
        papers.cells(*wanted)
