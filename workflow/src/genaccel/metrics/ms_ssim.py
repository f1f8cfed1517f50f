"""Multi-scale structural similarity, on as many of its five scales as a volume has room for."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from genaccel.metrics.image import DATA_RANGE
from genaccel.spec import SpecError

WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Weight of every scale, finest first. Source: Wang et al. 2003, section 3.2."""


def scales_that_fit(shape: Sequence[int], window: int) -> int:
    """How many of the five scales a volume has room for: a scale needs a shortest side of ``window`` voxels at least.

    Args:
        shape: voxels a side, (D, H, W).
        window: side of SSIM's Gaussian window in voxels.

    Returns:
        0 to 5; 0 where the window is larger than the volume itself.
    """
    side, scales = min(shape), 0
    while scales < len(WEIGHTS) and side >= window:
        side, scales = side // 2, scales + 1
    return scales


def ms_ssim(x: Tensor, y: Tensor, window: int, sigma: float, scales: int) -> float:
    """Multi-scale SSIM over the valid region; 1 for equal volumes, 0 where they have nothing in common.

    Between a synthetic and the real volume of one mask, higher is better; between samples, lower is more diverse.
    Values on different numbers of scales do not compare. From every scale to the next, volumes are averaged over
    2 x 2 x 2 voxels, an odd side losing its last plane. With fewer than five scales, the weights of the first are
    divided by their sum. A scale's mean contrast-structure term below zero, which has no real power, counts as 0.

    Args:
        x, y: (D, H, W) in [-1, 1].
        window: side of the Gaussian window in voxels, on every scale; odd.
        sigma: its standard deviation in voxels.
        scales: how many, 1 to ``scales_that_fit``.

    Raises:
        SpecError: the volume has no room for so many scales.

    Source: Wang, Simoncelli and Bovik, Multi-scale structural similarity for image quality assessment,
    Asilomar 2003, eq. 7.
    """
    room = scales_that_fit(x.shape, window)
    if not 1 <= scales <= room:
        size = "x".join(map(str, x.shape))
        raise SpecError(
            f"MS-SSIM on {scales} scales does not go with a window of {window} voxels in a {size} volume, which has "
            f"room for {room}; use 1 to {room} scales, or set metrics.ssim_window lower"
            if room
            else f"MS-SSIM's window of {window} voxels is larger than the shortest side of a {size} volume; "
            f"set metrics.ssim_window to {min(x.shape) - 1 + min(x.shape) % 2} or less (odd)"
        )
    # Here rather than on top: MONAI imports whatever is installed, which takes several seconds.
    from monai.metrics.regression import compute_ssim_and_cs

    x, y = x[None, None], y[None, None]
    weights = WEIGHTS[:scales]
    product = 1.0
    for scale, weight in enumerate(weights):
        similarity, contrast = compute_ssim_and_cs(
            x,
            y,
            spatial_dims=3,
            kernel_size=(window,) * 3,
            kernel_sigma=(sigma,) * 3,
            data_range=DATA_RANGE,
        )
        # The luminance of the coarsest scale alone counts.
        term = similarity if scale == scales - 1 else contrast
        product *= max(float(term.double().mean()), 0.0) ** (weight / sum(weights))
        x, y = F.avg_pool3d(x, 2), F.avg_pool3d(y, 2)
    return product
