"""Quantities and tables as they are printed."""

from __future__ import annotations

import pytest

from genaccel.plan.devices import GIB
from genaccel.plan.rates import Estimate
from genaccel.plan.table import gib, hours, minutes, text_table
from genaccel.resources import read_resource
from genaccel.spec import SpecError


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (3600 * 50.4, 3600 * 123.6, "50-124 h"),
        (3600 * 2.41, 3600 * 4.16, "2.4-4.2 h"),
        (3600 * 12.8, 3600 * 12.8, "13 h"),
        (1800, 3600 * 1.5, "0.50-1.5 h"),
        (342, 342, "5.7 min"),
        (0.1, 0.5, "< 0.1 min"),
    ],
)
def test_hours_have_two_digits_and_a_range_where_there_is_one(low, high, text):
    assert hours(Estimate(low, high, "")) == text


@pytest.mark.parametrize(("size", "text"), [(0, "-"), (1000, "< 0.1 GiB"), (18.73 * GIB, "18.7 GiB")])
def test_sizes_are_in_gib(size, text):
    assert gib(size) == text


@pytest.mark.parametrize(("number", "text"), [(0, "-"), (30, "30 min"), (240, "4 h"), (90, "90 min")])
def test_time_limits_are_in_hours_where_they_are_whole(number, text):
    assert minutes(number) == text


def test_columns_are_as_wide_as_their_widest_cell():
    assert text_table(["a", "size"], [["long", "1"], ["b", "23"]], right=(1,)) == "a     size\nlong     1\nb       23"


def test_a_row_with_a_cell_too_many_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("# why\na,b\n1,2\n1,2,3\n")
    with pytest.raises(SpecError, match="row 2"):
        read_resource("t.csv", tmp_path)
