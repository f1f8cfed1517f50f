"""Trilinear upsampling by two (``align_corners`` off) of channels-last volumes, and its transpose.

Along each axis an output voxel is 3/4 of the nearer and 1/4 of the farther input voxel; beyond the border the
border itself. Both directions gather, so that no two programs write one voxel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import columns, triton_runs

Sides = tuple[int, int, int]


def upsample(x: Tensor, sides: Sides) -> Tensor:
    """(B, V, C) of ``sides`` (D, H, W) -> (B, 8 V, C)."""
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        volume = x.transpose(1, 2).unflatten(-1, sides).float()
        doubled = F.interpolate(volume, scale_factor=2, mode="trilinear", align_corners=False)
        return doubled.flatten(2).transpose(1, 2).to(x.dtype).contiguous()
    from genaccel.med_ddpm.fast import _upsample

    out = x.new_empty(batch, 8 * voxels, channels)
    block = columns(channels)
    _upsample.upsample_forward[(-(-8 * voxels // _upsample.ROWS), -(-channels // block), batch)](
        x, out, *sides, channels, _upsample.ROWS, block
    )
    return out


def upsample_backward(dy: Tensor, sides: Sides) -> Tensor:
    """Gradient of ``upsample``'s input: (B, 8 V, C) -> (B, V, C), with ``sides`` those of the input."""
    batch, voxels, channels = dy.shape
    if not triton_runs(dy):
        x = torch.zeros(batch, voxels // 8, channels, dtype=torch.float32, device=dy.device, requires_grad=True)
        with torch.enable_grad():
            return torch.autograd.grad(upsample(x, sides), x, dy.float())[0].to(dy.dtype)
    from genaccel.med_ddpm.fast import _upsample

    dx = dy.new_empty(batch, voxels // 8, channels)
    block = columns(channels)
    _upsample.upsample_backward[(-(-voxels // 8 // _upsample.FEW), -(-channels // block), batch)](
        dy, dx, *sides, channels, _upsample.FEW, block
    )
    return dx
