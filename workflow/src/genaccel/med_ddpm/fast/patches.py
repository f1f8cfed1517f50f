"""3x3x3 neighbourhoods of planar volumes as rows of a matrix: convolutions of few channels become matrix products.

The library's convolutions fill three channels, or one, up to what their tiles hold and then do most of their work on
zeros. As a matrix the neighbourhoods of three channels are 81 columns wide: cheap to write, and a product as the
libraries like it.
"""

from __future__ import annotations

from itertools import product

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import triton_runs

MULTIPLE = 32
"""Rows are filled up with zeros to a multiple of this: 64 bytes in half precision."""


def patches(x: Tensor, dtype: torch.dtype, sign: int = 1, width: int | None = None) -> Tensor:
    """Neighbours of each voxel, zero beyond the border.

    Args:
        x: (B, K, D, H, W), contiguous.
        dtype: of the result.
        width: columns, those beyond 27 K zero; None: the next multiple of 32.
        sign: 1 for the voxel plus each offset, as a convolution reads; -1 for minus it, as its transpose does.

    Returns:
        (B, V, width); column neighbour * K + channel, neighbours in the order d, h, w.
    """
    batch, channels, *sides = x.shape
    voxels, width = sides[0] * sides[1] * sides[2], width or -(-27 * channels // MULTIPLE) * MULTIPLE
    if not triton_runs(x):
        filled = F.pad(x, (1,) * 6)
        near = [
            filled[:, :, d : d + sides[0], h : h + sides[1], w : w + sides[2]].flatten(2)
            for d, h, w in product(*[(0, 1, 2)[::sign]] * 3)
        ]
        rows = torch.stack(near, 1).flatten(1, 2).transpose(1, 2)
        return F.pad(rows, (0, width - 27 * channels)).to(dtype)
    from genaccel.med_ddpm.fast import _patches

    out = torch.empty(batch, voxels, width, dtype=dtype, device=x.device)
    grid = (-(-voxels // _patches.VOXELS), width // MULTIPLE, batch)
    _patches.patches_gather[grid](x, out, voxels, *sides, width, channels, sign, _patches.VOXELS, MULTIPLE)
    return out
