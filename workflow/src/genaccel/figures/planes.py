"""The three anatomical planes of a volume in RAS orientation, drawn to scale and the right way up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

CONVENTION = "Neurological convention: the subject's left (L) is on the left; A anterior, P posterior."


class Plane(NamedTuple):
    """A plane, across the axis ``normal`` of (R, A, S); its ``marks`` name the left and the right edge."""

    name: str
    normal: int
    marks: tuple[str, str]


# The axes that remain, in their order, point to the right and upwards: anterior is up in an axial slice,
# superior in the two others.
PLANES = (Plane("axial", 2, ("L", "R")), Plane("coronal", 1, ("L", "R")), Plane("sagittal", 0, ("P", "A")))


SMALLEST = 0.45
"""Inches; what a panel's name needs, however thin the volume."""


class Layout(NamedTuple):
    """Panels of the three planes side by side, all at one scale.

    Attributes:
        widths: of the panels in inches, in the order of ``PLANES``.
        height: of each, in inches.
        scale: inches a mm.
    """

    widths: tuple[float, ...]
    height: float
    scale: float

    def lefts(self, gap: float) -> tuple[float, ...]:
        """Left edges of the panels, in inches from that of the first."""
        return tuple(sum(self.widths[:number]) + gap * number for number in range(len(self.widths)))

    def width(self, gap: float) -> float:
        """From the left edge of the first panel to the right edge of the last."""
        return sum(self.widths) + gap * (len(self.widths) - 1)

    def field(self, plane: Plane) -> tuple[float, float]:
        """What a panel shows, width and height in mm."""
        return self.widths[PLANES.index(plane)] / self.scale, self.height / self.scale


def lay_out(extents: Sequence[Sequence[float]], longest: float) -> Layout:
    """Panels that hold every slice of some volumes and little else.

    Args:
        extents: of each volume along R, A, S in mm.
        longest: side of the longest panel in inches.
    """
    right, anterior, superior = (max(sides) for sides in zip(*extents, strict=True))
    scale = longest / max(right, anterior, superior)
    widths = tuple(max(side * scale, SMALLEST) for side in (right, right, anterior))
    return Layout(widths, max(anterior * scale, superior * scale, SMALLEST), scale)


def extent(shape: Sequence[int], sides: Sequence[float]) -> tuple[float, ...]:
    """Extent of a volume along R, A, S in mm."""
    return tuple(count * side for count, side in zip(shape, sides, strict=True))


def cut(volume: NDArray, plane: Plane, position: int) -> NDArray:
    """A slice of (R, A, S): rows upwards, columns to the right."""
    return volume.take(position, axis=plane.normal).T


def voxel_sides(affine: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Voxel sides in mm along R, A, S."""
    return tuple(float(side) for side in np.linalg.norm(np.array(affine)[:3, :3], axis=0))


def best_positions(labels: NDArray) -> tuple[int, int, int]:
    """Where along R, A, S a slice shows most of what the mask is about.

    That is all channels but the largest, which holds what surrounds the rest: the tumour, where the mask has
    one; else the largest; else the middle.

    Args:
        labels: (C, R, A, S) of 0 and 1.
    """
    largest = int(labels.sum(axis=(1, 2, 3)).argmax())
    inner = np.delete(labels, largest, axis=0).any(axis=0)
    target = inner if inner.any() else labels[largest] > 0
    if not target.any():
        return tuple(side // 2 for side in labels.shape[1:])
    return tuple(int(target.sum(axis=tuple({0, 1, 2} - {axis})).argmax()) for axis in range(3))


def show(
    axes: Axes,
    volume: NDArray,
    plane: Plane,
    positions: Sequence[int],
    sides: Sequence[float],
    field: tuple[float, float],
    outside: float = -1,
    **image: Any,
) -> AxesImage:
    """Draws a slice in mm, in the middle of a field.

    Args:
        volume: (R, A, S).
        positions: of the slices, along R, A, S.
        sides: voxel sides in mm.
        field: what the panel shows, width and height in mm.
        outside: what the field shows where the volume ends.
        image: for ``imshow``.
    """
    section = cut(volume, plane, positions[plane.normal])
    drawn = axes.imshow(
        section, origin="lower", extent=_extent(section, plane, sides), interpolation="nearest", **image
    )
    half, high = (side / 2 for side in field)
    axes.set(xlim=(-half, half), ylim=(-high, high), xticks=[], yticks=[], facecolor=drawn.to_rgba(outside))
    axes.set_aspect("equal")
    for spine in axes.spines.values():
        spine.set_visible(False)
    return drawn


def outline(
    axes: Axes, mask: NDArray, plane: Plane, positions: Sequence[int], sides: Sequence[float], colour: str
) -> None:
    """Draws the outline of a mask, (R, A, S) of 0 and 1, on a panel of ``show``."""
    section = cut(mask, plane, positions[plane.normal])
    if not section.any():
        return
    left, right, bottom, top = _extent(section, plane, sides)
    rows, columns = section.shape
    # A rim of zeros, so that a mask that touches the border has a closed outline.
    x = left + (right - left) * (np.arange(-1, columns + 1) + 0.5) / columns
    y = bottom + (top - bottom) * (np.arange(-1, rows + 1) + 0.5) / rows
    axes.contour(x, y, np.pad(section, 1), levels=[0.5], colors=[colour], linewidths=1.0)


def mark(axes: Axes, plane: Plane, size: float = 7) -> None:
    """Writes the directions of the left and right edges into a panel, on black, which shows on noise too."""
    letters = {"color": "white", "fontsize": size, "fontweight": "bold", "va": "center"}
    box = {"boxstyle": "square,pad=0.15", "facecolor": "black", "edgecolor": "none"}
    for x, text in zip((0.03, 0.97), plane.marks, strict=True):
        axes.text(x, 0.5, text, transform=axes.transAxes, ha="left" if x < 0.5 else "right", bbox=box, **letters)


def _extent(section: NDArray, plane: Plane, sides: Sequence[float]) -> tuple[float, float, float, float]:
    across, up = (side for axis, side in enumerate(sides) if axis != plane.normal)
    width, height = section.shape[1] * across, section.shape[0] * up
    return -width / 2, width / 2, -height / 2, height / 2
