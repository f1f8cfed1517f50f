import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import structural_similarity

from genaccel.metrics.image import image_scores, mse, psnr, ssim, ssim_map
from genaccel.spec import SpecError


def volumes(shape=(16, 18, 14), noise=0.2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(shape, generator=generator) * 2 - 1
    return x, (x + noise * torch.randn(shape, generator=generator)).clamp(-1, 1)


# scikit-image derives its window from sigma: 2 int(3.5 sigma + 0.5) + 1.
@pytest.mark.parametrize(("window", "sigma"), [(11, 1.5), (9, 1.0), (7, 0.8), (5, 0.5)])
@pytest.mark.parametrize("masked", [False, True])
def test_ssim_equals_scikit_images(window, sigma, masked):
    x, y = volumes()
    mask = torch.zeros(x.shape, dtype=torch.bool)
    mask[3:12, 2:15, 6:9] = True
    _, full = structural_similarity(
        x.double().numpy(),
        y.double().numpy(),
        gaussian_weights=True,
        sigma=sigma,
        use_sample_covariance=False,
        data_range=2,
        full=True,
    )
    valid = (slice(window // 2, -(window // 2)),) * 3
    expected = full[valid][mask.numpy()[valid]].mean() if masked else full[valid].mean()
    assert ssim(x, y, window, sigma, mask if masked else None) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("metric", [mse, psnr])
def test_scores_within_a_mask_ignore_what_lies_outside(metric):
    x, y = volumes()
    mask = torch.zeros(x.shape, dtype=torch.bool)
    mask[4:9, 4:9, 4:9] = True
    assert metric(x, y, mask) == metric(x[4:9, 4:9, 4:9], y[4:9, 4:9, 4:9])


def test_mse_and_psnr_of_a_known_offset():
    x = torch.zeros(4, 4, 4)
    assert mse(x, x + 0.5) == pytest.approx(0.25)
    assert psnr(x, x + 0.5) == pytest.approx(10 * math.log10(4 / 0.25))


def test_identical_volumes_have_ssim_one_and_infinite_psnr():
    x, _ = volumes()
    assert ssim(x, x, 7, 1.5) == 1
    assert mse(x, x) == 0
    assert psnr(x, x) == math.inf


@given(noise=st.floats(0.01, 1.0), seed=st.integers(0, 100))
@settings(max_examples=20, deadline=None)
def test_scores_are_symmetric(noise, seed):
    x, y = volumes(noise=noise, seed=seed)
    assert mse(x, y) == mse(y, x)
    assert ssim(x, y, 5, 1.0) == pytest.approx(ssim(y, x, 5, 1.0), abs=1e-6)


def test_every_score_worsens_with_noise():
    levels = [ssim(*volumes(noise=noise), 7, 1.5) for noise in (0.05, 0.2, 0.8)]
    assert levels == sorted(levels, reverse=True)
    levels = [psnr(*volumes(noise=noise)) for noise in (0.05, 0.2, 0.8)]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize(("side", "largest"), [(6, 5), (5, 5)])
def test_a_window_larger_than_the_volume_names_the_largest_that_fits(side, largest):
    x = torch.zeros(32, side, 32)
    with pytest.raises(SpecError, match=rf"window of 7 .* 32x{side}x32 .*ssim_window to {largest} or less"):
        ssim_map(x, x, 7, 1.5)


def test_a_window_as_large_as_the_volume_gives_one_value():
    x, y = volumes(shape=(7, 7, 7))
    assert ssim_map(x, y, 7, 1.5).shape == (1, 1, 1)


@pytest.mark.parametrize("metric", ["mse", "psnr", "ssim"])
def test_an_empty_foreground_is_not_a_number(metric):
    x, y = volumes()
    scores = image_scores(x, y, torch.zeros(x.shape, dtype=torch.bool), 7, 1.5)
    assert np.isnan(scores[metric, "foreground"])
    assert np.isfinite(scores[metric, "whole"])
