"""Smooth random fields."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def smooth_field(
    rng: np.random.Generator, shape: tuple[int, int, int], spacing: float, lattice: float
) -> NDArray[np.float64]:
    """A random field of root mean square 1 that varies over ``lattice`` mm.

    A uniform cubic B-spline with independent normal coefficients.

    Args:
        shape: voxels, (X, Y, Z).
        spacing: their side in mm.
        lattice: distance of the spline's control points in mm.

    Source: Rueckert et al., Nonrigid registration using free-form deformations, IEEE TMI 18, 1999, eq. 2.
    """
    # Three points more than the volume is wide: one before it and two after support the cubic pieces.
    points = [math.ceil(side * spacing / lattice) + 3 for side in shape]
    field = rng.standard_normal(points)
    for side, count in zip(shape, points, strict=True):
        place = np.arange(side)[:, None] * spacing / lattice + 1
        # Contracts the first axis and puts the voxels' last, so that three rounds restore the order.
        field = np.tensordot(field, _cubic_spline(place - np.arange(count)), axes=(0, 1))
    return field / np.sqrt(np.mean(field**2))


def _cubic_spline(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The uniform cubic B-spline, centred on 0, with support -2..2."""
    x = np.abs(x)
    return np.where(x < 1, 2 / 3 - x**2 + x**3 / 2, np.clip(2 - x, 0, None) ** 3 / 6)
