"""The first convolution: few planar FP32 channels in, a channels-last volume with its moments out."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.group_norm import moments
from genaccel.med_ddpm.fast.patches import patches


def stem(x: Tensor, kernel: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A 3x3x3 convolution.

    Args:
        x: (B, K, D, H, W) FP32.
        kernel: (C, 27 K), neighbours (d, h, w) first and channels last, in the dtype of the result.
        bias: (C,), in that dtype.

    Returns:
        (B, V, C), and its ``moments``.
    """
    rows = patches(x, kernel.dtype)
    y = F.linear(rows, F.pad(kernel, (0, rows.shape[-1] - kernel.shape[-1])), bias)
    return y, moments(y)


def stem_backward(x: Tensor, dy: Tensor) -> Tensor:
    """Gradient of the kernel, (C, 27 K), from ``stem``'s input and the gradient of its result, (B, V, C)."""
    rows = patches(x, dy.dtype)
    return (dy.flatten(0, 1).t() @ rows.flatten(0, 1))[:, : 27 * x.shape[1]]
