"""Scores of one synthetic volume against the real one: MSE, PSNR and SSIM, whole and within the foreground."""

from __future__ import annotations

import math

from torch import Tensor

from genaccel.spec import SpecError

DATA_RANGE = 2.0
"""Width of the intensity scale [-1, 1]."""

UNITS = {"mse": "1", "psnr": "dB", "ssim": "1"}


def mse(x: Tensor, y: Tensor, mask: Tensor | None = None) -> float:
    """Mean squared error over the voxels of ``mask``, or all.

    Args:
        x, y: (D, H, W) in [-1, 1].
        mask: (D, H, W), bool; an empty one gives NaN.
    """
    return _mean((x.double() - y.double()) ** 2, mask)


def psnr(x: Tensor, y: Tensor, mask: Tensor | None = None) -> float:
    """Peak signal-to-noise ratio in dB, of ``mse``'s arguments; infinite where ``x`` equals ``y``."""
    error = mse(x, y, mask)
    return math.inf if error == 0 else 10 * math.log10(DATA_RANGE**2 / error)


def ssim(x: Tensor, y: Tensor, window: int, sigma: float, mask: Tensor | None = None) -> float:
    """Mean structural similarity over the valid region, or over the voxels of ``mask`` within it.

    Args:
        x, y: (D, H, W) in [-1, 1].
        window: side of the Gaussian window in voxels; odd.
        sigma: its standard deviation in voxels.
        mask: (D, H, W), bool; NaN where none of its voxels is in the valid region.

    Raises:
        SpecError: the window is larger than the volume.
    """
    return _mean(ssim_map(x, y, window, sigma), None if mask is None else _valid(mask, window))


def ssim_map(x: Tensor, y: Tensor, window: int, sigma: float) -> Tensor:
    """SSIM around every voxel whose window lies within the volume, (D - window + 1, ...). Arguments as ``ssim``.

    K1 = 0.01, K2 = 0.03, population (co)variances.

    Source: Wang et al., Image quality assessment, IEEE TIP 13(4), 2004, eq. 13.
    """
    shortest = min(x.shape)
    if window > shortest:
        largest = shortest - 1 + shortest % 2
        raise SpecError(
            f"SSIM's window of {window} voxels is larger than the shortest side of a {_size(x)} volume; "
            f"set metrics.ssim_window to {largest} or less (odd)"
        )
    # Here rather than on top: MONAI imports whatever is installed, which takes several seconds.
    from monai.metrics.regression import compute_ssim_and_cs

    full, _ = compute_ssim_and_cs(
        x[None, None],
        y[None, None],
        spatial_dims=3,
        kernel_size=(window,) * 3,
        kernel_sigma=(sigma,) * 3,
        data_range=DATA_RANGE,
    )
    return full[0, 0].double()


def image_scores(
    synthetic: Tensor, real: Tensor, foreground: Tensor, window: int, sigma: float
) -> dict[tuple[str, str], float]:
    """Every score by (metric, region), region ``whole`` or ``foreground``. Arguments as the metrics' own."""
    similarity = ssim_map(synthetic, real, window, sigma)
    scores = {}
    for region, mask in (("whole", None), ("foreground", foreground)):
        scores["mse", region] = mse(synthetic, real, mask)
        scores["psnr", region] = psnr(synthetic, real, mask)
        scores["ssim", region] = _mean(similarity, None if mask is None else _valid(mask, window))
    return scores


def _valid(mask: Tensor, window: int) -> Tensor:
    """The part of a mask where a centred window lies within the volume."""
    margin = window // 2
    return mask[tuple(slice(margin, side - margin) for side in mask.shape)]


def _mean(values: Tensor, mask: Tensor | None) -> float:
    return float((values if mask is None else values[mask]).mean())


def _size(volume: Tensor) -> str:
    return "x".join(map(str, volume.shape))
