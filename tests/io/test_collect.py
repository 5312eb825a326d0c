"""All rows of a source at once."""

import numpy as np
import pytest

from aucmax.io.collect import collect
from aucmax.io.csv_source import CsvSource
from aucmax.io.svmlight import SvmlightSource


def test_files_of_several_widths_become_one_matrix(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 2:3\n")
    (tmp_path / "b").write_text("1 5:4\n")
    told = []
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    X, y, weight = collect(SvmlightSource(paths), lambda *step: told.append(step))
    expected = np.zeros((3, 5))
    expected[[0, 1, 2], [0, 1, 4]] = 2, 3, 4
    np.testing.assert_array_equal(X.toarray(), expected)
    np.testing.assert_array_equal(y, [1, -1, 1])
    assert weight is None
    assert told == [(13, 2), (19, 3)]


def test_dense_rows_labels_and_weights(tmp_path):
    (tmp_path / "a.csv").write_text("y,w,x\nham,1,2.5\nspam,2,3\n")
    source = CsvSource([str(tmp_path / "a.csv")], label="y", weight="w")
    X, y, weight = collect(source)
    np.testing.assert_array_equal(X, [[2.5], [3.0]])
    np.testing.assert_array_equal(y, ["ham", "spam"])
    np.testing.assert_array_equal(weight, [1, 2])


def test_a_bad_line_is_an_error_with_its_place(tmp_path):
    (tmp_path / "a").write_text("1 1:2\n-1 2;3\n1 x:1\n")
    with pytest.raises(ValueError, match=r"a, line 2.*\(and 1 more nearby\)"):
        collect(SvmlightSource([str(tmp_path / "a")]))


def test_nothing_is_an_error(tmp_path):
    (tmp_path / "a").write_text("# nothing\n\n")
    with pytest.raises(ValueError, match=r"No rows in .*a"):
        collect(SvmlightSource([str(tmp_path / "a")]))
