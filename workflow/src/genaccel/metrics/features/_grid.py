"""Brings volumes of any grid to the cube that feature networks see."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

SIDE = 128
"""Voxels a side of what the networks see, whatever the volume's grid, so that features of all studies compare."""


def to_cube(volumes: Tensor, side: int) -> Tensor:
    """(B, 1, D, H, W) -> (B, 1, side, side, side), linear. Padding with -1, which is air, keeps the aspect."""
    longest = max(volumes.shape[2:])
    padding = []
    for size in reversed(volumes.shape[2:]):
        before = (longest - size) // 2
        padding += [before, longest - size - before]
    cube = F.pad(volumes, padding, value=-1.0)
    return F.interpolate(cube, (side,) * 3, mode="trilinear", align_corners=False)
