"""Scaling of intensities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.data.faults import InputFault
from genaccel.data.intensity import scale_intensity

RAMP = np.linspace(-50, 950, 1001).reshape(7, 11, 13)


def test_the_two_percentiles_become_minus_one_and_one():
    scaled, intensity = scale_intensity(RAMP, (10, 90))
    assert (intensity.p_low, intensity.p_high) == (50, 850)
    at = {value: scaled.ravel()[np.argmin(np.abs(RAMP.ravel() - value))] for value in (50, 450, 850)}
    assert at == pytest.approx({50: -1, 450: 0, 850: 1})


def test_what_lies_beyond_the_percentiles_is_clipped():
    scaled, _ = scale_intensity(RAMP, (10, 90))
    assert (scaled.min(), scaled.max()) == (-1, 1)
    assert (scaled == -1).sum() == 101


@given(gain=st.floats(1e-3, 1e6), shift=st.floats(-1e3, 1e3))
def test_the_result_does_not_depend_on_the_scanners_units(gain, shift):
    scaled, _ = scale_intensity(RAMP, (0.5, 99.5))
    again, _ = scale_intensity(RAMP * gain + shift * gain, (0.5, 99.5))
    assert np.allclose(scaled, again, atol=1e-5)


def test_the_whole_volume_shares_one_scale():
    # Scaled slice by slice, all slices would come out alike.
    slices = np.arange(1, 6) * np.linspace(0, 1, 50).reshape(5, 10, 1)
    scaled, _ = scale_intensity(slices, (0, 100))
    assert scaled[..., 0].max() == pytest.approx(-0.6)
    assert scaled[..., 4].max() == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_any_storage_gives_float32(dtype):
    scaled, _ = scale_intensity(np.arange(120).reshape(4, 5, 6).astype(dtype), (0, 100))
    assert scaled.dtype == np.float32
    assert (scaled[0, 0, 0], scaled[-1, -1, -1]) == (-1, 1)


def test_the_statistics_are_the_source_volumes():
    _, intensity = scale_intensity(RAMP, (0.5, 99.5))
    assert (intensity.min, intensity.max, intensity.mean) == (-50, 950, 450)
    assert intensity.std == pytest.approx(RAMP.std())


def test_a_constant_image_is_refused():
    with pytest.raises(InputFault, match=r"t1\.nii is constant: all 24 voxels are 7"):
        scale_intensity(np.full((2, 3, 4), 7), (0.5, 99.5), "t1.nii")


def test_an_image_constant_between_its_percentiles_is_refused():
    image = np.zeros((10, 10, 10))
    image[0, 0, :2] = 5
    with pytest.raises(InputFault, match="is 0 at both its percentiles 1 and 99: only 2 of 1,000 voxels differ"):
        scale_intensity(image, (1, 99))
