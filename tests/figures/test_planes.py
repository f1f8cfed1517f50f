import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from genaccel.figures.planes import PLANES, best_positions, cut, extent, lay_out, mark, outline, show, voxel_sides

SHAPE = (10, 14, 8)
SIDES = (2.0, 3.0, 4.0)
AXES = {"R": 0, "A": 1, "S": 2}
FIELD = (42.0, 42.0)


def drawn(volume, plane, positions=(5, 7, 4), sides=SIDES, outside=-1.0):
    """Pixels of a panel as seen: row 0 on top."""
    figure = Figure(figsize=(2, 2), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    show(axes, volume, plane, positions, sides, FIELD, outside=outside, cmap="gray", vmin=-1, vmax=1)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., 0] / 255, axes


@pytest.mark.parametrize(
    ("plane", "right", "up"),
    [(PLANES[0], "R", "A"), (PLANES[1], "R", "S"), (PLANES[2], "A", "S")],
    ids=[plane.name for plane in PLANES],
)
@pytest.mark.parametrize("direction", ["right", "up"])
def test_the_plane_lies_as_its_marks_say(plane, right, up, direction):
    volume = np.full(SHAPE, -1.0)
    half = [slice(None)] * 3
    axis = AXES[{"right": right, "up": up}[direction]]
    half[axis] = slice(SHAPE[axis] // 2, None)
    volume[tuple(half)] = 1.0
    pixels, _ = drawn(volume, plane)
    rows, columns = np.nonzero(pixels > 0.5)
    if direction == "right":
        assert columns.min() >= 98
    else:
        assert rows.max() <= 101


def test_a_panel_is_to_scale():
    pixels, _ = drawn(np.ones(SHAPE), PLANES[0])
    inside = pixels > 0.5
    height, width = inside.any(axis=1).sum(), inside.any(axis=0).sum()
    assert height / width == pytest.approx(14 * 3 / (10 * 2), rel=0.02)


@pytest.mark.parametrize("shape", [(10, 14, 8), (8, 8, 8), (64, 64, 2), (4, 60, 60)])
def test_panels_share_one_scale_and_hold_every_slice_and_little_else(shape):
    right, anterior, superior = sides = extent(shape, (1.0, 1.0, 2.0))
    layout = lay_out([sides], longest=2.0)
    for plane, across, up in zip(PLANES, (right, right, anterior), (anterior, superior, superior), strict=True):
        width, height = layout.field(plane)
        assert width == pytest.approx(max(across, 0.45 / layout.scale))
        assert height >= up - 1e-9
    assert layout.height == pytest.approx(max(2.0 * max(anterior, superior) / max(sides), 0.45))
    assert max(*layout.widths, layout.height) == pytest.approx(2.0)


def test_the_panels_of_several_volumes_hold_the_largest_of_each_side():
    layout = lay_out([(10, 40, 10), (20, 20, 30)], longest=4.0)
    assert (layout.widths, layout.height) == ((2.0, 2.0, 4.0), 4.0)
    assert layout.lefts(0.5) == (0, 2.5, 5.0)
    assert layout.width(0.5) == 9.0


def test_letters_show_on_noise():
    """White letters lie on a black box, whatever the picture: bright and dark pixels are around each."""
    figure = Figure(figsize=(2, 2), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    show(axes, np.ones((20, 20, 20)), PLANES[0], (1, 1, 1), (1, 1, 1), (20, 20), cmap="gray", vmin=-1, vmax=1)
    mark(axes, PLANES[0])
    canvas.draw()
    letters = np.asarray(canvas.buffer_rgba())[92:108, 4:18, 0]
    assert (letters < 20).mean() > 0.3
    assert (letters > 200).mean() > 0.1


def test_beyond_the_volume_lies_what_the_caller_says():
    pixels, _ = drawn(np.ones(SHAPE), PLANES[0], outside=0.0)
    assert pixels[100, 3] == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("plane", PLANES, ids=[plane.name for plane in PLANES])
def test_a_cut_holds_the_voxels_of_its_position(plane):
    volume = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    section = cut(volume, plane, 3)
    right, up = (axis for axis in range(3) if axis != plane.normal)
    index = [0, 0, 0]
    index[plane.normal], index[right], index[up] = 3, 5, 6
    assert section[6, 5] == volume[tuple(index)]


def test_slices_go_through_the_most_of_the_inner_channels():
    labels = np.zeros((3, *SHAPE), np.uint8)
    labels[0, 1:9, 1:12, 1:7] = 1
    labels[1, 6:9, 2:4, 5:6] = 1
    labels[2, 7, 2, 1:6] = 1
    assert best_positions(labels) == (7, 2, 5)


def test_without_an_inner_channel_slices_go_through_the_most_of_the_largest():
    labels = np.zeros((2, *SHAPE), np.uint8)
    labels[0, 1:4, 2, 3] = 1
    assert best_positions(labels)[1:] == (2, 3)


def test_of_an_empty_mask_slices_go_through_the_middle():
    assert best_positions(np.zeros((2, *SHAPE), np.uint8)) == (5, 7, 4)


@given(data=st.data(), channels=st.integers(1, 4))
def test_positions_lie_within_the_volume(data, channels):
    seed = data.draw(st.integers(0, 1000))
    labels = (np.random.default_rng(seed).random((channels, 4, 5, 3)) > 0.9).astype(np.uint8)
    assert all(0 <= position < side for position, side in zip(best_positions(labels), (4, 5, 3), strict=True))


@pytest.mark.parametrize("plane", PLANES, ids=[plane.name for plane in PLANES])
def test_an_outline_surrounds_its_voxels_even_at_the_border(plane):
    axes = Figure().subplots()
    show(axes, np.zeros(SHAPE), plane, (0, 0, 0), SIDES, FIELD)
    mask = np.zeros(SHAPE, np.uint8)
    mask[:2, :2, :2] = 1
    outline(axes, mask, plane, (0, 0, 0), SIDES, "red")
    (contour,) = axes.collections
    (path,) = contour.get_paths()
    across, up = (SIDES[axis] for axis in range(3) if axis != plane.normal)
    columns, rows = (SHAPE[axis] for axis in range(3) if axis != plane.normal)
    low, high = path.vertices.min(axis=0), path.vertices.max(axis=0)
    np.testing.assert_allclose(low, [-columns * across / 2, -rows * up / 2])
    np.testing.assert_allclose(high - low, [2 * across, 2 * up])


def test_a_mask_that_misses_the_slice_has_no_outline():
    axes = Figure().subplots()
    outline(axes, np.zeros(SHAPE, np.uint8), PLANES[0], (0, 0, 0), SIDES, "red")
    assert not axes.collections


def test_voxel_sides_are_those_of_a_turned_grid():
    affine = np.array([[0.0, -3.0, 0, 5], [2.0, 0, 0, 6], [0, 0, 4.0, 7], [0, 0, 0, 1]])
    assert voxel_sides(affine) == (2.0, 3.0, 4.0)
