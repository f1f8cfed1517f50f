import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.figures.numbers import decimals, interval, number, with_spread
from genaccel.figures.style import MINUS, TIMES

NAN = math.nan


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (0.65, 0.01, "0.650 ± 0.010"),
        (21.0, 1.0, "21.0 ± 1.0"),
        (0.0391, NAN, "0.0391"),
        (0.0, NAN, "0.000"),
        (0.000391, NAN, "0.000391"),
        (1.234e-6, NAN, f"1.23 {TIMES} 10⁻⁶"),
        (-0.0001, 0.00552, f"{MINUS}0.00010 ± 0.00552"),
        (-0.0001, 0.5, "0.000 ± 0.500"),
        (812.4, NAN, "812"),
        (12345.0, 10.0, "12345 ± 10"),
        (2.5e7, NAN, f"2.50 {TIMES} 10⁷"),
    ],
)
def test_a_number_and_its_spread_end_at_the_same_decimal(mean, sd, text):
    assert with_spread(mean, sd, decimals(mean, sd)) == text


def test_an_interval_stands_in_brackets():
    assert interval(-0.5, 1.25, 2) == f"[{MINUS}0.50, 1.25]"
    assert interval(NAN, NAN, 2) == ""


@given(value=st.floats(1e-4, 1e5))
def test_three_digits_of_any_usual_number_are_shown(value):
    assert float(number(value, decimals(value))) == pytest.approx(value, rel=0.006)
