"""Scales a whole volume's intensities to [-1, 1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from genaccel.data.faults import InputFault
from genaccel.data.manifest import Intensity


def scale_intensity(
    array: NDArray, percentiles: tuple[float, float], name: str = "image"
) -> tuple[NDArray[np.float32], Intensity]:
    """Maps two percentiles of the volume to -1 and 1, linearly, and clips what lies beyond.

    The whole volume at once: scaling slice by slice would tear neighbouring slices apart.

    Args:
        array: (I, J, K), any real numbers, finite, on the source's own grid.
        percentiles: lower and upper, in percent of the voxels.
        name: the file's, for messages.

    Raises:
        InputFault: the image is constant, or constant between the two percentiles.
    """
    values = array.astype(np.float64)
    low, high = np.percentile(values, percentiles)
    lowest, highest = values.min(), values.max()
    if lowest == highest:
        raise InputFault(
            f"{name} is constant: all {values.size:,} voxels are {lowest:g}.", "Give the image itself, or leave it out."
        )
    if low == high:
        others = int(np.count_nonzero(values != low))
        raise InputFault(
            f"{name} is {low:g} at both its percentiles {percentiles[0]:g} and {percentiles[1]:g}: only {others:,} of "
            f"{values.size:,} voxels differ.",
            "Widen `data.percentiles`, for example to [0, 100], if the image is right.",
        )
    statistics = (low, high, lowest, highest, values.mean(), values.std())
    # Nine digits: the last bits of a sum differ between processors, and the manifest must not.
    intensity = Intensity(**dict(zip(Intensity.model_fields, (float(f"{s:.9g}") for s in statistics), strict=True)))
    scaled = np.clip((values - low) * (2 / (high - low)) - 1, -1, 1)
    return scaled.astype(np.float32), intensity
