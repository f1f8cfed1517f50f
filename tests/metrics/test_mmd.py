import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genaccel.metrics.interval import deletions
from genaccel.metrics.kid import kernel_distance, polynomial_kernel
from genaccel.metrics.mmd import KernelDistance, median_bandwidth, rbf_kernel, rbf_mmd
from genaccel.spec import SpecError


def features(n, d=12, seed=0, shift=0.0):
    return np.random.default_rng(seed).standard_normal((n, d)) + shift


def kernel_sums(kernel, x, y, unbiased):
    """The definition, a pair at a time."""

    def mean(a, b, same):
        pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if not (same and unbiased and i == j)]
        return sum(kernel(a[i], b[j]) for i, j in pairs) / len(pairs)

    return mean(x, x, True) + mean(y, y, True) - 2 * mean(x, y, False)


def test_mmd_equals_its_definition():
    x, y = features(5), features(7, seed=1, shift=0.3)
    expected = kernel_sums(lambda a, b: np.exp(-np.sum((a - b) ** 2) / (2 * 3.0**2)), x, y, unbiased=False)
    assert rbf_mmd(x, y, 3.0) == pytest.approx(expected, rel=1e-12)


def test_kid_equals_its_definition():
    x, y = features(5), features(7, seed=1, shift=0.3)
    expected = kernel_sums(lambda a, b: (a @ b / 12 + 1) ** 3, x, y, unbiased=True)
    assert kernel_distance(x, y) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 10, 101, 300])
@pytest.mark.parametrize("d", [3, 240])
def test_a_set_has_no_mmd_from_itself(n, d):
    x = features(n, d)
    assert rbf_mmd(x, x.copy(), 1.7) == 0


@given(n=st.integers(2, 12), m=st.integers(2, 12), seed=st.integers(0, 99), width=st.floats(0.1, 10))
@settings(max_examples=40, deadline=None)
def test_mmd_is_symmetric_and_never_negative(n, m, seed, width):
    x, y = features(n, seed=seed), features(m, seed=seed + 100)
    assert rbf_mmd(x, y, width) >= 0
    assert rbf_mmd(x, y, width) == pytest.approx(rbf_mmd(y, x, width), abs=1e-14)


def test_kid_between_sets_of_one_kind_is_zero_on_average_at_every_n():
    for n in (5, 20):
        values = [kernel_distance(features(n, seed=s), features(n, seed=1000 + s)) for s in range(200)]
        assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(len(values))
        assert min(values) < 0


@pytest.mark.parametrize("distance", [kernel_distance, lambda x, y: rbf_mmd(x, y, 5.0)])
def test_they_grow_with_a_shift(distance):
    values = [distance(features(40, shift=shift), features(40, seed=1)) for shift in (0, 0.3, 1, 2)]
    assert values == sorted(values)


@pytest.mark.parametrize("unbiased", [True, False])
def test_leaving_out_equals_taking_the_distance_without(unbiased):
    z = features(15)
    kernel = polynomial_kernel(z) if unbiased else rbf_kernel(z, 4.0)
    subjects = np.array([0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6, 7, 8]) if unbiased else None
    distance, first, second = KernelDistance(kernel, subjects), np.arange(6), np.arange(6, 15)
    keep, keep_second, _ = deletions([f"a{i}" for i in first], [f"b{i}" for i in second])
    expected = [distance(first[i], second[j]) for i, j in zip(keep, keep_second, strict=True)]
    np.testing.assert_allclose(distance.each(first, second, keep, keep_second), expected, rtol=1e-10)


def test_the_bandwidth_is_the_median_distance():
    assert median_bandwidth([[0.0], [1.0], [5.0]]) == 4.0


@pytest.mark.parametrize("same", [[[1.0, 2.0]], [[1.0, 2.0]] * 3, np.empty((0, 2))])
def test_volumes_without_distance_have_no_bandwidth(same):
    assert median_bandwidth(same) is None


@pytest.mark.parametrize(("metric", "distance"), [("KID", kernel_distance), ("MMD", lambda x, y: rbf_mmd(x, y, 1.0))])
def test_fewer_than_two_volumes_are_an_error(metric, distance):
    with pytest.raises(
        SpecError, match=rf"{metric} needs at least two volumes a side, but the synthetic set has 1; .*per_m"
    ):
        distance(features(1), features(4))
    with pytest.raises(
        SpecError, match=rf"{metric}: the features of the real set are not all finite, in 1 of 3 volumes"
    ):
        distance(features(4), np.where(np.arange(3)[:, None] == 1, np.nan, features(3)))
