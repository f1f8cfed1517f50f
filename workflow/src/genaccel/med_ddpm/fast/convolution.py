"""3x3x3 convolutions over channels-last volumes, (B, V, C), by PyTorch's library kernels and without bias.

A bias would be one more pass over the volume; the fused kernels around add it for nothing.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

Sides = tuple[int, int, int]


def as_5d(x: Tensor, sides: Sides) -> Tensor:
    """(B, V, C) as (B, C, D, H, W) over the same memory, strided channels-last."""
    return x.unflatten(1, sides).permute(0, 4, 1, 2, 3)


def as_rows(x: Tensor) -> Tensor:
    """(B, C, D, H, W) strided channels-last as (B, V, C) over the same memory."""
    return x.permute(0, 2, 3, 4, 1).flatten(1, 3)


def convolve(x: Tensor, sides: Sides, kernel: Tensor, stride: int = 1) -> Tensor:
    """(B, V, C) -> (B, V', C'), V' = V or, with stride 2, V / 8 where all sides are even."""
    y = F.conv3d(as_5d(x, sides), kernel, stride=stride, padding=1)
    return as_rows(y.contiguous(memory_format=torch.channels_last_3d))


def data_gradient(dy: Tensor, sides: Sides, kernel: Tensor, stride: int = 1) -> Tensor:
    """Gradient of ``convolve``'s volume; ``sides`` are those of the input."""
    like = dy.new_empty(len(dy), sides[0] * sides[1] * sides[2], kernel.shape[1])
    dx = _backward(dy, like, sides, kernel, stride, [True, False, False])[0]
    return as_rows(dx.contiguous(memory_format=torch.channels_last_3d))


def weight_gradient(x: Tensor, dy: Tensor, sides: Sides, kernel: Tensor, stride: int = 1) -> Tensor:
    """Gradient of ``convolve``'s kernel, (C', C, 3, 3, 3)."""
    return _backward(dy, x, sides, kernel, stride, [False, True, False])[1]


def _backward(dy: Tensor, x: Tensor, sides: Sides, kernel: Tensor, stride: int, mask: list[bool]):
    reduced = tuple((side - 1) // stride + 1 for side in sides)
    return torch.ops.aten.convolution_backward(
        as_5d(dy, reduced), as_5d(x, sides), kernel, None, [stride] * 3, [1] * 3, [1] * 3, False, [0] * 3, 1, mask
    )
