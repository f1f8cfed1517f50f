"""Draws synthetic volumes beside the real volume and the mask of their subject, in three planes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from genaccel.command import stage_errors
from genaccel.data.manifest import Manifest, load_subject, read_manifest
from genaccel.figures.planes import CONVENTION, PLANES, Layout, best_positions, extent, lay_out, mark, show, voxel_sides
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MINUS, MUTED, axes_at, colour, figure_parser, save, text_at, theme
from genaccel.metrics.samples import SampleIndex, by_subject, load_sample, read_index

# Inches.
MARGIN, LABEL, PANEL, GAP, BETWEEN, HEAD, FOOT = 0.15, 0.45, 1.05, 0.03, 0.16, 1.05, 0.78
GROUPS = ("Mask", "Real", "Synthetic", f"Synthetic {MINUS} real")


class Row(NamedTuple):
    """One subject in one modality: (R, A, S) volumes, and where to cut them as in ``planes``."""

    subject: str
    modality: str
    mask: NDArray
    real: NDArray
    synthetic: NDArray
    positions: tuple[int, int, int]
    sides: tuple[float, ...]


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("sample_montage", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the data set that was sampled")
    parser.add_argument("--samples", type=Path, required=True, help="folder of the stage `sample`")
    args = parser.parse_args(argv)
    with stage_errors("figures.sample_montage"):
        job = FigureJob.parse(args.spec)
        with theme():
            save(sample_montage(args.manifest, args.samples, job), args.out, job.figures)


def sample_montage(manifest_path: Path, folder: Path, job: FigureJob) -> Figure:
    """One row for each modality of each of the first subjects of the sampled split."""
    manifest, index = read_manifest(manifest_path), read_index(folder)
    rows = list(read_rows(manifest_path, folder, manifest, index, job.figures.subjects))
    limit = difference_limit(rows)
    layout = lay_out([extent(row.mask.shape, row.sides) for row in rows], PANEL)
    width = _group(layout, len(GROUPS)) - BETWEEN + MARGIN
    step = layout.height + GAP
    figure = Figure(figsize=(width, HEAD + len(rows) * step + FOOT))
    _head(figure, manifest, index, job, layout, shown=len({row.subject for row in rows}))
    for number, row in enumerate(rows):
        top = HEAD + number * step
        draw_row(figure, top, row, _mask_colours(manifest), limit, layout, marked=number == 0)
        _sideways(figure, 0.3, top + layout.height / 2, row.modality, layout.height, fontsize=7.5, color=MUTED)
    block = len(manifest.modalities) * step
    for number, subject in enumerate(dict.fromkeys(row.subject for row in rows)):
        middle = HEAD + number * block + block / 2
        _sideways(figure, 0.1, middle, subject, block, fontsize=8, fontweight="bold")
    _foot(figure, manifest, limit, layout)
    return figure


def _group(layout: Layout, number: int) -> float:
    """Left edge of a group of three panels, in inches."""
    return MARGIN + LABEL + number * (layout.width(GAP) + BETWEEN)


def read_rows(
    manifest_path: Path, folder: Path, manifest: Manifest, index: SampleIndex, subjects: int
) -> Iterator[Row]:
    """The rows of the first subjects, with the first sample of each."""
    samples = by_subject(index, manifest)
    for subject in manifest.in_split(index.split)[:subjects]:
        image, labels = load_subject(manifest_path, subject)
        synthetic = load_sample(folder, samples[subject.subject][0], image.shape)
        mask, positions = label_map(labels), best_positions(labels)
        sides = voxel_sides(subject.grid.target_affine)
        for modality, real, fake in zip(manifest.modalities, image, synthetic, strict=True):
            yield Row(subject.subject, modality, mask, real, fake, positions, sides)


def label_map(labels: NDArray) -> NDArray:
    """(C, R, A, S) of 0 and 1 to (R, A, S): a channel's number plus one, the smallest channel on top; else 0."""
    numbers = np.zeros(labels.shape[1:], dtype=np.uint8)
    for channel in np.argsort(-labels.sum(axis=(1, 2, 3)), kind="stable"):
        numbers[labels[channel] > 0] = channel + 1
    return numbers


def difference_limit(rows: Sequence[Row]) -> float:
    """End of the difference's colours: its 99.5th percentile, rounded up to a tenth. An outlier would pale the rest."""
    largest = max(float(np.percentile(np.abs(row.synthetic - row.real), 99.5)) for row in rows)
    return min(max(np.ceil(largest * 10 - 1e-6) / 10, 0.1), 2.0)


def draw_row(
    figure: Figure, top: float, row: Row, mask_colours: ListedColormap, limit: float, layout: Layout, marked: bool
) -> None:
    difference = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit, "outside": 0}
    grey = {"cmap": "gray", "vmin": -1, "vmax": 1}
    channels = {"cmap": mask_colours, "vmin": -0.5, "vmax": mask_colours.N - 0.5, "outside": 0}
    panels = ((row.mask, channels), (row.real, grey), (row.synthetic, grey), (row.synthetic - row.real, difference))
    for group, (volume, image) in enumerate(panels):
        for plane, left, width in zip(PLANES, layout.lefts(GAP), layout.widths, strict=True):
            axes = axes_at(figure, _group(layout, group) + left, top, width, layout.height)
            show(axes, volume, plane, row.positions, row.sides, layout.field(plane), **image)
            if marked and group < 3:
                mark(axes, plane)


def _sideways(
    figure: Figure, left: float, middle: float, text: str, room: float, fontsize: float, **style: str
) -> None:
    """Text that runs upwards beside the panels, in smaller letters where it would not fit ``room`` inches."""
    letters = min(fontsize, room / (0.01 * max(len(text), 1)))
    text_at(figure, MARGIN + left, middle, text, rotation=90, ha="center", va="center", fontsize=letters, **style)


def _mask_colours(manifest: Manifest) -> ListedColormap:
    return ListedColormap(["black", *(colour(number) for number in range(len(manifest.channels)))])


def _head(figure: Figure, manifest: Manifest, index: SampleIndex, job: FigureJob, layout: Layout, shown: int) -> None:
    kind = "simulated subjects" if manifest.kind == "simulated" else "subjects"
    per_mask = 1 + max(volume.sample for volume in index.volumes)
    text = f"{index.sampler}, {index.steps} steps, seed {index.seed};  {index.split} split, "
    text += f"{shown} of {len(manifest.in_split(index.split))} {kind}"
    text += f";  first of {per_mask} samples a mask" if per_mask > 1 else ""
    text_at(figure, MARGIN, 0.14, f"Synthetic volumes: {job.title}", fontsize=11, fontweight="bold")
    text_at(figure, MARGIN, 0.38, text, fontsize=8, color=MUTED)
    for group, name in enumerate(GROUPS):
        left = _group(layout, group)
        middle = left + layout.width(GAP) / 2
        text_at(figure, middle, 0.66, name, fontsize=9, fontweight="bold", ha="center")
        for plane, start, width in zip(PLANES, layout.lefts(GAP), layout.widths, strict=True):
            centre = left + start + width / 2
            text_at(figure, centre, HEAD - 0.05, plane.name, fontsize=7, color=MUTED, ha="center", va="bottom")


def _foot(figure: Figure, manifest: Manifest, limit: float, layout: Layout) -> None:
    """Below each group what its colours mean; below all, how the planes lie."""
    width, height = figure.get_size_inches()
    patches = [Patch(color=colour(number), label=name) for number, name in enumerate(manifest.channels)]
    place = ((MARGIN + LABEL) / width, (FOOT - 0.1) / height)
    figure.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=place,
        ncols=max(2, math.ceil(len(patches) / 2)),
        fontsize=7.5,
        handlelength=1,
        borderaxespad=0,
    )
    for middle, label, colours, end in (
        (2, "scaled intensity", "gray", 1.0),
        (3.5, "difference", "RdBu_r", limit),
    ):
        left = _group(layout, 0) + middle * (layout.width(GAP) + BETWEEN) - BETWEEN / 2 - 0.9
        axes = axes_at(figure, left, height - FOOT + 0.1, 1.8, 0.09)
        # Intensities cannot leave their scale; differences may exceed the limit of theirs.
        extend = "both" if label == "difference" and end < 2 else "neither"
        scale = ScalarMappable(Normalize(-end, end), colours)
        bar = figure.colorbar(scale, axes, orientation="horizontal", extend=extend, ticks=[-end, 0, end])
        bar.ax.tick_params(labelsize=7, length=2, pad=2)
        bar.set_label(label, fontsize=7.5, labelpad=1)
        bar.outline.set_linewidth(0.5)
    note = f"Slices where the mask's inner channels are largest. {CONVENTION}"
    text_at(figure, MARGIN + LABEL, height - 0.12, note, fontsize=7, color=MUTED, va="bottom")


if __name__ == "__main__":
    main()
