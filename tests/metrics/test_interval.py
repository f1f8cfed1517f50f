import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genaccel.metrics.distances import Frechet
from genaccel.metrics.interval import GROUPS, deletions, jackknife_interval, too_few
from genaccel.metrics.kid import polynomial_kernel
from genaccel.metrics.mmd import KernelDistance, rbf_kernel

D = 4


def distance(metric, z, subjects):
    """Of one metric between volumes with features z."""
    if metric == "fid":
        return Frechet(z)
    if metric == "mmd":
        return KernelDistance(rbf_kernel(z, 2.5))
    return KernelDistance(polynomial_kernel(z), np.unique(subjects, return_inverse=True)[1])


def measured(metric, x, y, subjects, reference):
    """The distance, its sets and its value."""
    d = distance(metric, np.concatenate([x, y]), [*subjects, *reference])
    first, second = np.arange(len(x)), len(x) + np.arange(len(y))
    return d, first, second, d(first, second)


def interval(metric, x, y, subjects, reference):
    d, first, second, value = measured(metric, x, y, subjects, reference)
    keep, keep_second, stratum = deletions(subjects, reference)
    return value, *jackknife_interval(value, d.each(first, second, keep, keep_second), stratum)


def independent(rng, n):
    return rng.standard_normal((n, D)) + 1, 1.2 * rng.standard_normal((n, D))


def paired(rng, n):
    """A synthetic volume looks like the real one of its mask."""
    y = rng.standard_normal((n, D))
    return 0.8 * y + 1 + 0.6 * rng.standard_normal((n, D)), y


def grouped(rng, n):
    """Two synthetic volumes a mask, much alike."""
    base = rng.standard_normal((n, D)) + 1
    x = np.repeat(base, 2, axis=0) + 0.3 * rng.standard_normal((2 * n, D))
    return x, 1.2 * rng.standard_normal((n, D))


def names(n, prefix="s", each=1):
    return [f"{prefix}{i:04d}" for i in range(n) for _ in range(each)]


SETTINGS = {
    "independent": (independent, lambda n: (names(n), names(n, "r"))),
    "paired": (paired, lambda n: (names(n), names(n))),
    "two a mask": (grouped, lambda n: (names(n, each=2), names(n, "r"))),
}


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize(("metric", "n"), [("fid", 40), ("kid", 40), ("mmd", 40), ("fid", 210)])
def test_the_width_is_that_of_repeating_the_study(metric, n, kind):
    draw, subjects = SETTINGS[kind]
    values = [measured(metric, *draw(np.random.default_rng(seed), n), *subjects(n))[-1] for seed in range(150)]
    found = [interval(metric, *draw(np.random.default_rng(seed), n), *subjects(n)) for seed in range(8)]
    half = np.mean([(high - low) / 2 for _, low, high in found])
    # Student's t of 24 degrees of freedom or more lies between 1.96 and 2.07.
    assert 0.75 < half / (2 * np.std(values, ddof=1)) < 1.35


@pytest.mark.parametrize("metric", ["fid", "kid", "mmd"])
def test_between_sets_of_one_kind_it_is_wide_rather_than_narrow(metric):
    def draw(seed):
        return np.split(np.random.default_rng(seed).standard_normal((40, 30)), 2)

    subjects = names(20), names(20, "r")
    values = [measured(metric, *draw(seed), *subjects)[-1] for seed in range(100)]
    half = np.mean([(high - low) / 2 for _, low, high in (interval(metric, *draw(s), *subjects) for s in range(8))])
    assert 0.95 < half / (2 * np.std(values, ddof=1)) < 2.2


def test_it_covers_the_mean_over_studies_about_as_often_as_it_says():
    subjects = names(40), names(40, "r")
    values = [measured("fid", *independent(np.random.default_rng(1000 + s), 40), *subjects)[-1] for s in range(300)]
    found = [interval("fid", *independent(np.random.default_rng(s), 40), *subjects) for s in range(40)]
    assert np.mean([low <= np.mean(values) <= high for _, low, high in found]) >= 0.88


def test_kid_of_samples_like_the_real_volumes_of_their_masks_is_zero_on_average():
    def draw(seed):
        rng = np.random.default_rng(seed)
        y = rng.standard_normal((20, D))
        # Two a mask, like each other and like the real one, and yet of its very distribution.
        shared = np.repeat(0.8 * y, 2, axis=0)
        return shared + 0.6 * rng.standard_normal(shared.shape), y

    values = [measured("kid", *draw(seed), names(20, each=2), names(20))[-1] for seed in range(300)]
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(len(values))


@given(
    n=st.integers(3, 12), m=st.integers(3, 12), seed=st.integers(0, 99), metric=st.sampled_from(["fid", "kid", "mmd"])
)
@settings(max_examples=40, deadline=None)
def test_it_contains_the_estimate(n, m, seed, metric):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 20)), rng.standard_normal((m, 20))
    value, low, high = interval(metric, x, y, names(n), names(m, "r"))
    assert np.isfinite([low, high]).all()
    assert low <= value <= high


def test_of_sets_without_spread_it_is_the_value():
    assert jackknife_interval(2.0, np.full(5, 1.5), np.zeros(5, int)) == (2.0, 2.0)


def test_each_subject_is_left_out_once_with_all_its_volumes():
    keep, keep_reference, stratum = deletions(["a", "a", "b"], ["c", "d"])
    assert keep.tolist() == [[False, False, True], [True, True, False], [True] * 3, [True] * 3]
    assert keep_reference.tolist() == [[True] * 2, [True] * 2, [False, True], [True, False]]
    assert stratum.tolist() == [0, 0, 1, 1]


def test_a_subject_of_both_sets_is_left_out_of_both():
    keep, keep_reference, stratum = deletions(["a", "b", "c"], ["c", "b", "a"])
    assert keep.tolist() == [[False, True, True], [True, False, True], [True, True, False]]
    assert keep_reference.tolist() == [[True, True, False], [True, False, True], [False, True, True]]
    assert set(stratum) == {0}


@pytest.mark.parametrize(("n", "rows"), [(200, 200), (201, GROUPS), (1000, GROUPS)])
def test_many_subjects_are_left_out_in_groups_that_cover_each_once(n, rows):
    keep, _, _ = deletions(names(n), names(n))
    assert len(keep) == rows
    assert ((~keep).sum(axis=0) == 1).all()


@pytest.mark.parametrize(("n", "m", "each"), [(2, 5, 1), (5, 2, 1), (2, 5, 4)])
def test_two_subjects_a_side_are_too_few(n, m, each):
    reason = f"needs three subjects a side at least; there are {n} synthetic and {m} real"
    assert reason in too_few(names(n, each=each), names(m, "r"))
    assert too_few(names(3), names(3, "r")) == ""
