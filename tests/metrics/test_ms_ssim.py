import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from monai.metrics.regression import MultiScaleSSIMMetric

from genaccel.metrics.image import ssim
from genaccel.metrics.ms_ssim import WEIGHTS, ms_ssim, scales_that_fit
from genaccel.spec import SpecError


def smooth(seed, shape=(20, 24, 22)):
    """A random volume in [-1, 1] with structure on every scale."""
    generator = torch.Generator().manual_seed(seed)
    volume = torch.zeros(shape)
    for side in (3, 6, 12):
        coarse = torch.randn(1, 1, side, side, side, generator=generator)
        volume += F.interpolate(coarse, shape, mode="trilinear")[0, 0]
    return (volume / 3).clamp(-1, 1)


def noisy(volume, amount, seed=9):
    noise = torch.randn(volume.shape, generator=torch.Generator().manual_seed(seed))
    return (volume + amount * noise).clamp(-1, 1)


@pytest.mark.parametrize(
    ("shape", "window", "scales"),
    [
        ((20, 20, 20), 7, 2),
        ((128, 128, 128), 7, 5),
        ((128, 128, 128), 11, 4),
        ((175, 200, 200), 11, 4),
        ((176, 200, 200), 11, 5),
        ((192, 192, 144), 11, 4),
        ((7, 64, 64), 7, 1),
        ((6, 64, 64), 7, 0),
        ((10**6,) * 3, 3, 5),
    ],
)
def test_the_shortest_side_decides_how_many_scales_fit(shape, window, scales):
    assert scales_that_fit(shape, window) == scales


@given(side=st.integers(3, 40), window=st.sampled_from([3, 5, 7]))
@settings(max_examples=20, deadline=None)
def test_as_many_scales_as_fit_can_be_computed_and_no_more(side, window):
    x = torch.zeros(side, side + 1, side + 2)
    scales = scales_that_fit(x.shape, window)
    if scales:
        assert ms_ssim(x, x, window, 1.0, scales) == 1
    with pytest.raises(SpecError):
        ms_ssim(x, x, window, 1.0, scales + 1)


# MONAI asks for more voxels than needed on four scales, and for fewer than needed on two.
@pytest.mark.parametrize(
    ("shape", "window", "scales"), [((20, 24, 22), 5, 3), ((48, 50, 49), 3, 5), ((30, 31, 32), 3, 4)]
)
def test_it_equals_monais_where_both_apply(shape, window, scales):
    x = smooth(0, shape)
    y = noisy(x, 0.3)
    weights = [weight / sum(WEIGHTS[:scales]) for weight in WEIGHTS[:scales]]
    metric = MultiScaleSSIMMetric(spatial_dims=3, data_range=2.0, kernel_size=window, kernel_sigma=1.0, weights=weights)
    assert ms_ssim(x, y, window, 1.0, scales) == pytest.approx(float(metric(x[None, None], y[None, None])), abs=1e-6)


def test_on_one_scale_it_is_ssim():
    x, y = smooth(0), noisy(smooth(0), 0.3)
    assert ms_ssim(x, y, 7, 1.5, 1) == pytest.approx(ssim(x, y, 7, 1.5), abs=1e-9)


@pytest.mark.parametrize("scales", [1, 2, 3])
def test_equal_volumes_have_one(scales):
    assert ms_ssim(smooth(0), smooth(0), 5, 1.5, scales) == 1


@given(amount=st.floats(0.01, 1.0), seed=st.integers(0, 100))
@settings(max_examples=10, deadline=None)
def test_it_is_symmetric_and_within_zero_and_one(amount, seed):
    x, y = smooth(seed), noisy(smooth(seed), amount)
    value = ms_ssim(x, y, 5, 1.5, 3)
    assert 0 <= value <= 1
    assert value == pytest.approx(ms_ssim(y, x, 5, 1.5, 3), abs=1e-6)


def test_it_worsens_with_noise():
    x = smooth(0)
    values = [ms_ssim(x, noisy(x, amount), 5, 1.5, 3) for amount in (0.05, 0.2, 0.8)]
    assert values == sorted(values, reverse=True)


def test_opposite_contrast_counts_as_nothing_in_common_rather_than_as_not_a_number():
    x = smooth(0)
    assert ms_ssim(x, -x, 5, 1.5, 3) == 0


def test_samples_of_one_volume_with_noise_are_less_diverse_than_different_volumes():
    alike = ms_ssim(noisy(smooth(0), 0.05, seed=1), noisy(smooth(0), 0.05, seed=2), 5, 1.5, 3)
    assert alike > ms_ssim(smooth(0), smooth(1), 5, 1.5, 3) + 0.2


def test_volumes_are_not_changed():
    x, y = smooth(0), smooth(1)
    before = x.clone(), y.clone()
    ms_ssim(x, y, 5, 1.5, 3)
    assert torch.equal(x, before[0])
    assert torch.equal(y, before[1])


@pytest.mark.parametrize("scales", [0, 3, 5])
def test_scales_without_room_are_an_error_that_says_how_many_fit(scales):
    x = torch.zeros(20, 20, 20)
    message = (
        rf"on {scales} scales does not go with a window of 7 voxels in a 20x20x20 .* room for 2; use 1 to 2 scales"
    )
    with pytest.raises(SpecError, match=message):
        ms_ssim(x, x, 7, 1.5, scales)


def test_a_window_larger_than_the_volume_names_the_largest_that_fits():
    x = torch.zeros(32, 6, 32)
    with pytest.raises(SpecError, match=r"window of 7 voxels is larger .* 32x6x32 .*ssim_window to 5 or less"):
        ms_ssim(x, x, 7, 1.5, 1)
