"""The model's grid and the way back."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nibabel import affines, orientations
from scipy.spatial.transform import Rotation

from genaccel.data.grid import Grid, plan_grid, to_grid, to_source

AXCODES = ["".join(ends) for pairs in itertools.permutations(("RL", "AP", "SI")) for ends in itertools.product(*pairs)]


def shapes_3d(largest: int = 12) -> st.SearchStrategy:
    return st.tuples(*[st.integers(1, largest)] * 3)


def affine_for(axcodes: str, spacing=(1.0, 1.0, 1.0), turn: float = 0.0) -> np.ndarray:
    """An affine whose axes point as the codes say, turned by a small angle about an odd axis."""
    matrix = np.zeros((3, 3))
    for axis, (world, flip) in enumerate(orientations.axcodes2ornt(axcodes)):
        matrix[int(world), axis] = flip * spacing[axis]
    rotation = Rotation.from_rotvec(turn * np.array([0.48, 0.6, 0.64])).as_matrix()
    return affines.from_matvec(rotation @ matrix, (3, -70, 11))


def unique_voxels(shape) -> np.ndarray:
    return np.arange(1, np.prod(shape) + 1, dtype=np.float64).reshape(shape)


def places(shape, affine) -> np.ndarray:
    """World coordinates of every voxel, (X, Y, Z, 3)."""
    return affines.apply_affine(np.array(affine), np.moveaxis(np.indices(shape), 0, -1))


def test_there_are_48_orientations():
    assert len(set(AXCODES)) == 48


@given(shape=shapes_3d(), axcodes=st.sampled_from(AXCODES), target=shapes_3d(), turn=st.sampled_from([0.0, 0.3]))
def test_writing_on_the_masks_grid_inverts_preprocessing(shape, axcodes, target, turn):
    volume = unique_voxels(shape)
    grid = plan_grid(shape, affine_for(axcodes, turn=turn), target, "crop_pad")
    on_grid = to_grid(volume, grid, order=1, fill=-1)
    back = to_source(on_grid, grid, fill=-1)
    assert on_grid.shape == target
    assert back.shape == shape
    kept = back != -1
    assert kept.sum() == np.prod(np.minimum(grid_shape_in_ras(shape, axcodes), target))
    assert np.array_equal(back[kept], volume[kept])
    assert np.array_equal(np.sort(on_grid[on_grid != -1]), np.sort(volume[kept]))


def grid_shape_in_ras(shape, axcodes) -> list[int]:
    return [shape[next(i for i, code in enumerate(axcodes) if code in pair)] for pair in ("RL", "AP", "SI")]


@given(shape=shapes_3d(8), axcodes=st.sampled_from(AXCODES), factor=st.sampled_from([2, 3]))
def test_labels_survive_a_finer_grid_and_back(shape, axcodes, factor):
    labels = unique_voxels(shape).astype(np.int32)
    target = tuple(side * factor for side in grid_shape_in_ras(shape, axcodes))
    grid = plan_grid(shape, affine_for(axcodes), target, "resample", 1 / factor)
    assert np.array_equal(to_source(to_grid(labels, grid, order=0), grid, fill=-1, order=0), labels)


@given(
    axcodes=st.sampled_from(AXCODES),
    spacing=st.tuples(*[st.sampled_from([0.8, 1.0, 1.5])] * 3),
    turn=st.sampled_from([0.0, 0.3]),
    to=st.sampled_from([None, 0.7, 1.3]),
)
def test_every_voxel_stays_in_its_place(axcodes, spacing, turn, to):
    # A linear function of the world survives blur and linear interpolation alike, away from the borders.
    shape, slope = (24, 26, 25), np.array([1.0, -2.0, 0.5])
    affine = affine_for(axcodes, spacing, turn)
    grid = plan_grid(shape, affine, (20, 23, 22), "resample", to)
    on_grid = to_grid(places(shape, affine) @ slope, grid, order=1, fill=np.nan)
    blur = affines.voxel_sizes(np.array(grid.target_affine)).max() / min(spacing)
    inner = inside(grid.target_shape, grid.target_affine, shape, affine, margin=1 + 2 * blur)
    expected = places(grid.target_shape, grid.target_affine) @ slope
    assert inner.any()
    assert np.allclose(on_grid[inner], expected[inner], atol=1e-6)


def inside(shape, affine, other_shape, other_affine, margin: float) -> np.ndarray:
    """Voxels of one grid that lie inside another by a margin in its voxels."""
    index = affines.apply_affine(np.linalg.inv(other_affine), places(shape, affine))
    return ((index >= margin) & (index <= np.array(other_shape) - 1 - margin)).all(-1)


@given(shape=shapes_3d(20), axcodes=st.sampled_from(AXCODES), target=shapes_3d(20))
def test_without_a_spacing_the_whole_field_of_view_fits(shape, axcodes, target):
    spacing = (0.5, 1.0, 3.0)
    grid = plan_grid(shape, affine_for(axcodes, spacing), target, "resample")
    assert to_source(np.ones(target, np.uint8), grid, fill=0, order=0).all()
    sides = affines.voxel_sizes(np.array(grid.target_affine))
    assert np.allclose(sides, sides[0])
    extent = [
        side * spacing[axcodes.index(next(c for c in axcodes if c in pair))]
        for side, pair in zip(grid_shape_in_ras(shape, axcodes), ("RL", "AP", "SI"), strict=True)
    ]
    assert np.isclose(sides[0], max(e / t for e, t in zip(extent, target, strict=True)))


@pytest.mark.parametrize("axcodes", AXCODES)
def test_the_models_axes_point_right_anterior_superior(axcodes):
    grid = plan_grid((4, 5, 6), affine_for(axcodes, turn=0.2), (3, 4, 5), "resample")
    assert "".join(orientations.aff2axcodes(np.array(grid.target_affine))) == "RAS"


@given(shape=shapes_3d(), axcodes=st.sampled_from(AXCODES), turn=st.floats(-0.5, 0.5))
def test_a_grid_survives_json_exactly(shape, axcodes, turn):
    grid = plan_grid(shape, affine_for(axcodes, (0.7, 1.1, 1.3), turn), (7, 7, 5), "resample")
    assert Grid.parse(grid.canonical()) == grid


def test_both_grids_share_their_centre():
    affine = affine_for("LPI", (1, 2, 3), 0.3)
    grid = plan_grid((7, 8, 9), affine, (4, 4, 4), "resample", 5.0)
    centres = [
        affines.apply_affine(np.array(a), (np.array(s) - 1) / 2)
        for a, s in ((grid.source_affine, grid.source_shape), (grid.target_affine, grid.target_shape))
    ]
    assert np.allclose(*centres)


def test_a_coarser_grid_blurs_images_first():
    stripes = np.tile(np.array([0.0, 1.0], np.float32), (12, 12, 6))
    grid = plan_grid(stripes.shape, np.eye(4), (4, 4, 4), "resample")
    assert np.allclose(to_grid(stripes, grid, order=1)[..., 1:-1], 0.5, atol=0.15)


def test_a_constant_image_stays_constant():
    grid = plan_grid((9, 9, 9), np.eye(4), (4, 5, 6), "resample")
    assert np.allclose(to_grid(np.full((9, 9, 9), 0.25, np.float32), grid, order=1, fill=0.25), 0.25)


def test_a_border_voxel_keeps_its_outer_half():
    grid = plan_grid((2, 2, 2), np.eye(4), (4, 4, 4), "resample")
    assert (to_grid(np.ones((2, 2, 2), np.float32), grid, order=1, fill=-1) == 1).all()


@pytest.mark.parametrize("fine", range(1, 40))
def test_ties_between_voxels_always_fall_to_the_higher(fine):
    for coarse in range(1, 40):
        labels = np.arange(fine, dtype=np.int32)[:, None, None]
        grid = plan_grid(labels.shape, np.eye(4), (coarse, 1, 1), "resample", fine / coarse)
        step = Fraction(fine, coarse)
        exact = [step * k + Fraction(fine - 1, 2) - step * Fraction(coarse - 1, 2) for k in range(coarse)]
        assert to_grid(labels, grid, order=0)[:, 0, 0].tolist() == [math.floor(e + Fraction(1, 2)) for e in exact]


def test_labels_are_never_mixed():
    labels = np.random.default_rng(0).choice([0, 1, 4], (9, 8, 7)).astype(np.int32)
    grid = plan_grid(labels.shape, affine_for("SPL", (1, 1.5, 2)), (12, 5, 9), "resample")
    assert set(np.unique(to_grid(labels, grid, order=0))) <= {0, 1, 4}


@pytest.mark.parametrize(
    "put",
    [lambda grid: to_grid(np.zeros((3, 3, 3)), grid, order=1), lambda grid: to_source(np.zeros((2, 2, 2, 2)), grid)],
)
def test_a_volume_of_another_shape_is_refused(put):
    with pytest.raises(ValueError, match="is not on its grid of shape"):
        put(plan_grid((4, 4, 4), np.eye(4), (2, 2, 2), "crop_pad"))
