import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from genaccel.figures.intervals import NONE, of_mean, of_pairs

VALUES = st.lists(st.floats(-100, 100), min_size=2, max_size=30)


def test_the_interval_of_a_mean_is_students():
    values = [0.3, 0.5, 0.4, 0.8]
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert of_mean(values) == pytest.approx(expected)


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_repeats_of_a_mask_do_not_narrow_the_interval(repeats):
    values = [0.3, 0.5, 0.4, 0.8]
    repeated = [value for value in values for _ in range(repeats)]
    assert of_mean(repeated, repeats) == pytest.approx(of_mean(values))


@given(values=VALUES)
def test_it_holds_the_mean(values):
    low, high = of_mean(values)
    assert low <= np.mean(values) + 1e-9
    assert high >= np.mean(values) - 1e-9


@pytest.mark.parametrize(("values", "repeats"), [([], 1), ([0.5], 1), ([0.5, 0.6], 2), ([0.1, 0.2, 0.3], 2)])
def test_fewer_than_two_subjects_or_a_part_of_one_have_no_interval(values, repeats):
    assert of_mean(values, repeats) is NONE


def pairs(volumes):
    return [abs(x - y) for x, y in itertools.combinations(volumes, 2)]


def test_the_interval_of_pairs_is_the_jackknife_over_volumes():
    volumes = np.random.default_rng(0).normal(size=7)
    without = np.array([np.mean(pairs(np.delete(volumes, n))) for n in range(7)])
    error = math.sqrt(6 / 7 * np.sum((without - without.mean()) ** 2))
    reach = stats.t.ppf(0.975, 6) * error
    low, high = of_pairs(pairs(volumes))
    assert (low, high) == pytest.approx((np.mean(pairs(volumes)) - reach, np.mean(pairs(volumes)) + reach))


def test_pairs_that_share_volumes_have_a_wider_interval_than_independent_values():
    volumes = np.random.default_rng(1).normal(size=10)
    (low, high), (narrow_low, narrow_high) = of_pairs(pairs(volumes)), of_mean(pairs(volumes))
    assert high - low > narrow_high - narrow_low


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 7])
def test_values_that_are_not_all_pairs_of_four_volumes_have_no_interval(count):
    assert of_pairs([0.5] * count) is NONE
