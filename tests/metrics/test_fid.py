import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm

from genaccel.metrics.fid import frechet_distance, frechet_distances
from genaccel.metrics.interval import deletions
from genaccel.spec import SpecError

D = 240


def features(n, d=D, seed=0, shift=0.0):
    return np.random.default_rng(seed).standard_normal((n, d)) + shift


@pytest.mark.parametrize(("n", "m", "d"), [(500, 400, 16), (60, 80, 20), (600, 700, D)])
def test_equals_the_formula_with_a_matrix_square_root(n, m, d):
    x, y = features(n, d), 1.3 * features(m, d, seed=1, shift=0.2)
    s1, s2 = np.cov(x, rowvar=False), np.cov(y, rowvar=False)
    mean = np.sum((x.mean(0) - y.mean(0)) ** 2)
    expected = mean + np.trace(s1) + np.trace(s2) - 2 * np.trace(sqrtm(s1 @ s2)).real
    assert frechet_distance(x, y).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [2, 3, 10, 239, 240, 500])
def test_a_set_has_no_distance_from_itself(n):
    x = features(n)
    assert frechet_distance(x, x[::-1]).value < 1e-8 * np.trace(np.cov(x, rowvar=False))


@pytest.mark.parametrize("n", range(2, 11))
def test_is_finite_below_the_dimension(n):
    distance = frechet_distance(features(n), features(n + 3, seed=1))
    assert np.isfinite(distance.value)
    assert distance.value > 0


@given(n=st.integers(2, 12), m=st.integers(2, 12), d=st.integers(1, 10), seed=st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_is_symmetric_and_never_negative(n, m, d, seed):
    x, y = features(n, d, seed), features(m, d, seed + 100)
    there, back = frechet_distance(x, y).value, frechet_distance(y, x).value
    assert there >= 0
    assert there == pytest.approx(back, abs=1e-10)


def test_of_shifted_equal_sets_is_the_shift_squared():
    x = features(50, 8)
    assert frechet_distance(x, x + 0.5).value == pytest.approx(8 * 0.25, rel=1e-10)


@pytest.mark.parametrize(("n", "m", "reliable"), [(240, 240, True), (239, 300, False), (300, 239, False)])
def test_is_unreliable_where_a_set_is_smaller_than_the_dimension(n, m, reliable):
    distance = frechet_distance(features(n), features(m, seed=1))
    assert distance.reliable is reliable
    assert (distance.n, distance.n_reference, distance.dimension) == (n, m, D)


@pytest.mark.parametrize(("n", "m", "which"), [(1, 5, "synthetic set has 1"), (5, 0, "real set has 0")])
def test_fewer_than_two_volumes_are_an_error(n, m, which):
    with pytest.raises(SpecError, match=f"at least two volumes a side, but the {which}"):
        frechet_distance(features(n), features(m))


def test_features_that_are_not_finite_are_an_error():
    x = features(4)
    x[2, 7] = np.nan
    with pytest.raises(SpecError, match="features of the real set are not all finite"):
        frechet_distance(features(4), x)


def test_sets_of_different_dimension_are_an_error():
    with pytest.raises(SpecError, match=r"\(4, 240\) and \(4, 128\)"):
        frechet_distance(features(4), features(4, d=128))


@pytest.mark.parametrize("n", range(2, 11))
def test_identical_sets_give_zero(n):
    assert frechet_distance(features(n), features(n)).value == 0


@pytest.mark.parametrize(("n", "m", "d"), [(8, 11, 20), (30, 25, 20), (30, 8, 20), (12, 50, 6)])
def test_leaving_out_equals_taking_the_distance_without(n, m, d):
    x, y = features(n, d), 1.2 * features(m, d, seed=1, shift=0.3)
    keep, keep_reference, _ = deletions([f"a{i}" for i in range(n)], [f"b{i}" for i in range(m)])
    expected = [frechet_distance(x[i], y[j]).value for i, j in zip(keep, keep_reference, strict=True)]
    np.testing.assert_allclose(frechet_distances(x, y, keep, keep_reference), expected, rtol=1e-6)
