"""Memorisation: how near a synthetic volume is to the nearest real volume of the training split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from genaccel.spec import SpecError

SIDE = 32
"""Voxels a side of a thumbnail, at most: enough to tell subjects apart, and thousands of them fit in memory."""
CHUNK_BYTES = 2**27


def thumbnail_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Voxels a side of the thumbnail of a volume, (R, A, S)."""
    factor = _factor(shape)
    return tuple(-(-side // factor) for side in shape)


def thumbnail(volume: Tensor) -> Tensor:
    """Averages over cubes of voxels, the smallest with which no side has more than 32: 1-D, float32, on the CPU.

    A volume of 32 voxels a side or fewer is kept as it is.

    Args:
        volume: (R, A, S) in [-1, 1].
    """
    factor = _factor(volume.shape)
    # A cube that the border cuts is averaged over what lies within.
    pooled = F.avg_pool3d(volume[None, None].float(), factor, ceil_mode=True)
    return pooled.flatten().cpu()


def nearest(x: Tensor | NDArray, reference: Tensor | NDArray, exclude_self: bool = False) -> Tensor:
    """Root-mean-square distance of every thumbnail to the nearest of the reference: (n,), float64; 0 for a copy.

    Far below the same distance of real volumes that were not trained on, a synthetic volume is memorised.

    Args:
        x: (n, k), one thumbnail a row.
        reference: (m, k).
        exclude_self: ``x`` is ``reference``, and no row is compared with itself.

    Raises:
        SpecError: there is nothing to compare with, thumbnails of two sizes, or values that are not finite.
    """
    x, reference = torch.as_tensor(x).cpu(), torch.as_tensor(reference).cpu()
    _check(x, reference, exclude_self)
    rows = max(1, CHUNK_BYTES // (8 * reference.shape[1]))
    distances = np.full(len(x), np.inf)
    for i, row in enumerate(x):
        for start in range(0, len(reference), rows):
            # The difference itself: the expanded square loses a copy's exact zero.
            squares = (reference[start : start + rows].double() - row.double()).square().mean(dim=1)
            if exclude_self and start <= i < start + rows:
                squares[i - start] = torch.inf
            distances[i] = min(distances[i], float(squares.min().sqrt()))
    return torch.from_numpy(distances)


def _factor(shape: Sequence[int]) -> int:
    return -(-max(shape) // SIDE)


def _check(x: Tensor, reference: Tensor, exclude_self: bool) -> None:
    needed = 2 if exclude_self else 1
    if len(reference) < needed:
        raise SpecError(
            f"memorisation compares with {needed} real volume(s) of the training split at least; there are "
            f"{len(reference)}; raise data.<name>.split.train, or add subjects"
        )
    if exclude_self and len(x) != len(reference):
        raise SpecError(
            f"memorisation cannot leave each volume itself out: {len(x)} volumes are compared with {len(reference)}"
        )
    if x.shape[1] != reference.shape[1]:
        raise SpecError(
            f"memorisation compares thumbnails of {x.shape[1]} with such of {reference.shape[1]} voxels; sample and "
            "score the same manifest"
        )
    for rows in (x, reference):
        bad = int((~rows.isfinite()).any(dim=1).sum())
        if bad:
            raise SpecError(
                f"{bad} of {len(rows)} volumes hold NaN or infinite voxels; a distance of them means nothing"
            )
