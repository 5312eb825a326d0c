"""Decimal places by the width of an interval."""

import pytest

from aucmax.metrics._ranking import decimals, exact, with_interval


@pytest.mark.parametrize(
    ("error", "places"),
    [(0.3, 2), (0.15, 2), (0.0999, 3), (0.012, 3), (0.003, 4), (2e-4, 5), (1e-9, 6)],
)
def test_two_digits_of_the_standard_error(error, places):
    assert decimals(0.5 - 2 * error, 0.5 + 2 * error) == places


def test_numbers_of_one_interval_have_equally_many():
    assert with_interval(0.8125, 0.3671, 0.97) == ("0.81", "0.37", "0.97")
    assert with_interval(1.0, 0.99712, 1.0) == ("1.00000", "0.99712", "1.00000")
    assert with_interval(0.5, 0.5, 0.5) == ("0.500000",) * 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.01, "0.01"), (20.0, "20"), (0.9999999, "0.9999999"), (1e-7, "1e-07"), (3, "3")],
)
def test_texts_are_read_back_as_the_same_number(number, text):
    assert exact(number) == text
    assert float(text) == number
    assert float(exact(number / 3)) == number / 3
