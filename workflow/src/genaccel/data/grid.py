"""From a file's grid to the model's and back, with what is needed to invert it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from nibabel import affines, orientations
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from genaccel.spec import Spec

Shape = tuple[int, int, int]
Row = tuple[float, float, float, float]
Affine = tuple[Row, Row, Row, Row]

RAS = orientations.axcodes2ornt("RAS")
# Halving a grid samples exactly between voxels. This share of a voxel decides such ties the same way on
# every machine, instead of leaving them to the last bit.
TIE = 1e-6


class Grid(Spec):
    """Two grids of one subject: where its files' voxels lie and where the model's do.

    Attributes:
        source_shape, source_affine: of the mask's file; the affine takes voxel indices to RAS+ mm.
        target_shape, target_affine: of the model's grid, whose axes point R, A, S as nearly as the source's
            axes allow: they are the source's own, permuted and flipped, so that nothing is ever rotated.

    ``canonical`` and ``parse`` write and read it as JSON, exactly.
    """

    source_shape: Shape
    source_affine: Affine
    target_shape: Shape
    target_affine: Affine


def plan_grid(
    source_shape: Shape,
    source_affine: ArrayLike,
    shape: Shape,
    fit: Literal["resample", "crop_pad"],
    spacing: float | None = None,
) -> Grid:
    """Chooses the model's grid, centred on the source's field of view.

    Args:
        source_shape: voxels of the file along its own axes.
        source_affine: (4, 4), from those to RAS+ mm.
        shape: voxels of the model's grid along R, A, S.
        fit: ``crop_pad`` keeps the voxels as they are; ``resample`` makes isotropic ones.
        spacing: their side in mm; None takes the finest at which the whole field of view fits.
    """
    ras_shape, ras_affine, _ = _as_ras(source_shape, source_affine)
    sides = affines.voxel_sizes(ras_affine)
    if fit == "crop_pad":
        scale = np.ones(3)
        # Whole voxels: where the surplus is odd, the higher end loses one more or gains one more.
        offset = np.floor((np.array(ras_shape) - shape) / 2)
    else:
        side = spacing or float(np.max(np.array(ras_shape) * sides / shape))
        scale = side / sides
        offset = (np.array(ras_shape) - 1) / 2 - scale * (np.array(shape) - 1) / 2
    target_affine = ras_affine @ affines.from_matvec(np.diag(scale), offset)
    return Grid(
        source_shape=tuple(map(int, source_shape)),
        source_affine=_plain(source_affine),
        target_shape=tuple(map(int, shape)),
        target_affine=_plain(target_affine),
    )


def to_grid(array: NDArray, grid: Grid, order: Literal[0, 1], fill: float = 0) -> NDArray:
    """Puts a source volume on the model's grid.

    Args:
        array: (I, J, K), of ``grid.source_shape``.
        order: 1 for images: linear, after a Gaussian against aliasing along axes that get coarser;
            0 for labels: nearest voxel.
        fill: where the model's grid leaves the source's field of view.

    Returns:
        (R, A, S), of ``grid.target_shape`` and the array's type. Without a change of spacing its voxels
        are the source's, bit for bit.

    Raises:
        ValueError: the array is not of the grid's source shape.
    """
    _check_shape(array.shape, grid.source_shape)
    _, ras_affine, orientation = _as_ras(grid.source_shape, grid.source_affine)
    scale, offset = _steps(ras_affine, grid.target_affine)
    return _sample(orientations.apply_orientation(array, orientation), scale, offset, grid.target_shape, order, fill)


def to_source(volume: NDArray, grid: Grid, fill: float = -1, order: Literal[0, 1] = 1) -> NDArray:
    """Puts a volume of the model's grid back on the mask's own grid: its shape, orientation and affine.

    Args:
        volume: (R, A, S), of ``grid.target_shape``.
        fill: for voxels of the mask that the model's grid does not cover.
        order: as for ``to_grid``.

    Returns:
        (I, J, K), of ``grid.source_shape`` and the volume's type.

    Raises:
        ValueError: the volume is not of the grid's target shape.
    """
    _check_shape(volume.shape, grid.target_shape)
    ras_shape, ras_affine, _ = _as_ras(grid.source_shape, grid.source_affine)
    scale, offset = _steps(grid.target_affine, ras_affine)
    ras = _sample(volume, scale, offset, ras_shape, order, fill)
    back = orientations.ornt_transform(RAS, orientations.io_orientation(np.array(grid.source_affine)))
    return np.ascontiguousarray(orientations.apply_orientation(ras, back))


def _as_ras(shape: Shape, affine: ArrayLike) -> tuple[Shape, NDArray, NDArray]:
    """Shape and affine once the axes point R, A, S, and the flips and permutation that do it."""
    affine = np.asarray(affine, dtype=np.float64)
    orientation = orientations.ornt_transform(orientations.io_orientation(affine), RAS)
    order = np.argsort(orientation[:, 0])
    ras_shape = tuple(int(shape[axis]) for axis in order)
    return ras_shape, affine @ orientations.inv_ornt_aff(orientation, shape), orientation


def _steps(array_affine: ArrayLike, sampled_affine: ArrayLike) -> tuple[NDArray, NDArray]:
    """Scale and offset by which indices of the sampled grid become indices of the array's, axis by axis."""
    between = np.linalg.solve(np.asarray(array_affine), np.asarray(sampled_affine))
    # Ten digits wash out the inversion's rounding: a shift by whole voxels is exactly that again.
    return np.round(np.diag(between)[:3], 10), np.round(between[:3, 3], 10) + 0.0


def _sample(array: NDArray, scale: NDArray, offset: NDArray, shape: Shape, order: int, fill: float) -> NDArray:
    indices = [scale[axis] * np.arange(shape[axis]) + offset[axis] for axis in range(3)]
    whole = (scale == 1).all() and (offset == np.rint(offset)).all()
    if order == 0 or whole:
        nearest = [np.floor(index + 0.5 + TIE).astype(int) for index in indices]
        sampled = array[np.ix_(*(n.clip(0, side - 1) for n, side in zip(nearest, array.shape, strict=True)))]
    else:
        # `nearest` rather than `constant`: the outer half of a border voxel still belongs to it.
        sampled = ndimage.affine_transform(
            _without_alias(array, scale), scale, offset, shape, array.dtype, order=1, mode="nearest"
        )
    for axis, (index, side) in enumerate(zip(indices, array.shape, strict=True)):
        sampled[(slice(None),) * axis + ((index < -0.5 - TIE) | (index > side - 0.5 + TIE),)] = fill
    return sampled


def _without_alias(array: NDArray, scale: NDArray) -> NDArray:
    """Blurs axes that get coarser, so that the blur and the fine voxel together are as wide as the coarse voxel.

    Source: Cardoso et al., Scale Factor Point Spread Function Matching, MICCAI 2015: the variances of
    Gaussian point spread functions, whose full width at half maximum is a voxel's side, add up.
    """
    variance = np.maximum(scale**2 - 1, 0) / (8 * np.log(2))
    if not variance.any():
        return array
    return ndimage.gaussian_filter(array, np.sqrt(variance), mode="nearest")


def _check_shape(shape: tuple[int, ...], expected: Shape) -> None:
    if shape != expected:
        raise ValueError(f"a volume of shape {shape} is not on its grid of shape {expected}")


def _plain(affine: ArrayLike) -> Affine:
    # + 0.0 turns -0.0 into 0.0: one affine, one text.
    return tuple(tuple(map(float, row)) for row in np.asarray(affine, dtype=np.float64) + 0.0)
