"""Synthetic tumours: where they lie and how far each voxel is from the core."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from genaccel.data.simulate.fields import smooth_field

ROUGHNESS = 0.3
"""Standard deviation of the logarithm of the surface's distance from the centre."""


def tumour_rank(
    rng: np.random.Generator, brain: NDArray[np.bool_], spacing: float, radius: tuple[float, float]
) -> NDArray[np.float64]:
    """Places one irregular tumour inside the brain.

    Args:
        brain: (X, Y, Z), where a tumour may be.
        spacing: voxel side in mm.
        radius: range in mm of the radius of the sphere of the tumour's volume; drawn evenly.

    Returns:
        (X, Y, Z): how much of the tumour lies further inside, from just above 0 in the core to just below
        1 at the rim; 1 outside the tumour.
    """
    mean_radius = rng.uniform(*radius)
    depth = ndimage.distance_transform_edt(brain) * spacing
    # The centre is as deep as the tumour is wide, give or take: it may touch the surface, not lie across it.
    centres = np.argwhere(depth >= min(0.8 * mean_radius, 0.9 * depth.max()))
    centre = centres[rng.integers(len(centres))]
    voxels = np.argwhere(brain)
    away = (voxels - centre) * spacing
    distance = np.linalg.norm(away, axis=1)
    # The surface's roughness depends on the direction alone, so that the tumour is in one piece.
    directions = away / np.maximum(distance, spacing / 2)[:, None]
    field = smooth_field(rng, brain.shape, spacing, lattice=mean_radius)
    on_sphere = (centre + directions * (mean_radius / spacing)).T
    stretch = np.exp(ROUGHNESS * ndimage.map_coordinates(field, on_sphere, order=1, mode="nearest"))
    size = round(4 / 3 * math.pi * (mean_radius / spacing) ** 3)
    size = min(max(size, 1), len(voxels) // 4)
    inside = np.argsort(distance / stretch, kind="stable")[:size]
    rank = np.ones(brain.shape)
    rank[tuple(voxels[inside].T)] = (np.arange(size) + 0.5) / size
    return rank


def shells(rank: NDArray[np.float64], labels: tuple[int, ...]) -> NDArray[np.int32]:
    """Cuts a tumour into nested shells of equal volume, one a label; 0 outside.

    The first label is the core, the second the rim, and any further ones lie between, from the core
    outwards, as BraTS numbers necrosis 1, oedema 2 and enhancing tumour 3.
    """
    outwards = np.array([*labels[:1], *labels[2:], *labels[1:2]], dtype=np.int32)
    index = np.minimum((rank * len(outwards)).astype(int), len(outwards) - 1)
    return np.where(rank < 1, outwards[index], 0).astype(np.int32)
