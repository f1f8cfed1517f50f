"""Draws prepared subjects for a look before training: planes with the mask's outlines, and intensities."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from genaccel.command import stage_errors
from genaccel.data.manifest import Manifest, Subject, load_subject, read_manifest
from genaccel.figures.planes import (
    CONVENTION,
    PLANES,
    Layout,
    best_positions,
    extent,
    lay_out,
    mark,
    outline,
    show,
    voxel_sides,
)
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MUTED, TIMES, WARNING, axes_at, colour, figure_parser, save, text_at, theme
from genaccel.spec import SpecError

# Inches.
MARGIN, PANEL, GAP, HISTOGRAM, TITLE, HEAD, FOOT = 0.15, 1.75, 0.06, 2.1, 0.52, 0.36, 0.7
LOWEST = 1.3  # what a histogram needs

# Other hues than the mask channels', which mean something else.
MODALITY_COLOURS = ("#332288", "#882255", "#117733", "#CC6677", "#44AA99", "#999933")


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("qc_montage", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the stage `data`")
    args = parser.parse_args(argv)
    with stage_errors("figures.qc_montage"):
        job = FigureJob.parse(args.spec)
        with theme():
            save(qc_montage(args.manifest, job), args.out, job.figures)


def qc_montage(manifest_path: Path, job: FigureJob) -> Figure:
    """One row a subject, the first ones of the manifest.

    Raises:
        SpecError: the manifest has no subject.
    """
    manifest = read_manifest(manifest_path)
    subjects = manifest.subjects[: job.figures.subjects]
    if not subjects:
        raise SpecError(f"{manifest_path} has no subject to draw; the stage `data` skipped all of them")
    grids = [subject.grid for subject in subjects]
    layout = lay_out([extent(grid.target_shape, voxel_sides(grid.target_affine)) for grid in grids], PANEL)
    row_height = TITLE + max(layout.height, LOWEST)
    width = 2 * MARGIN + layout.width(GAP) + 0.25 + HISTOGRAM + 0.15
    figure = Figure(figsize=(width, HEAD + len(subjects) * row_height + FOOT))
    kind = "simulated subjects" if manifest.kind == "simulated" else "subjects"
    heading = f"Prepared {kind}: {job.title}  ({len(subjects)} of {len(manifest.subjects)})"
    text_at(figure, MARGIN, 0.14, heading, fontsize=11, fontweight="bold")
    for row, subject in enumerate(subjects):
        last = row == len(subjects) - 1
        draw_subject(figure, HEAD + row * row_height, subject, manifest, manifest_path, layout, last)
    _foot(figure, manifest)
    return figure


def draw_subject(
    figure: Figure,
    top: float,
    subject: Subject,
    manifest: Manifest,
    manifest_path: Path,
    layout: Layout,
    last: bool,
) -> None:
    image, labels = load_subject(manifest_path, subject)
    sides, positions = voxel_sides(subject.grid.target_affine), best_positions(labels)
    text_at(figure, MARGIN, top + 0.14, subject.subject, fontsize=9, fontweight="bold")
    text_at(figure, MARGIN, top + 0.31, _describe(subject, sides), fontsize=7.5, color=MUTED)
    if subject.warnings:
        more = f" (and {len(subject.warnings) - 1} more)" if len(subject.warnings) > 1 else ""
        warning = textwrap.shorten(subject.warnings[0], 80, placeholder="...") + more
        text_at(figure, figure.get_figwidth() - MARGIN, top + 0.15, warning, fontsize=7, color=WARNING, ha="right")
    for plane, left, width in zip(PLANES, layout.lefts(GAP), layout.widths, strict=True):
        axes = axes_at(figure, MARGIN + left, top + TITLE, width, layout.height)
        show(axes, image[0], plane, positions, sides, layout.field(plane), cmap="gray", vmin=-1, vmax=1)
        for number in np.argsort(-labels.sum(axis=(1, 2, 3))):  # the small ones on top
            outline(axes, labels[number], plane, positions, sides, colour(number))
        mark(axes, plane)
    left, height = MARGIN + layout.width(GAP) + 0.25, max(layout.height, LOWEST) - 0.6
    draw_histogram(axes_at(figure, left, top + TITLE + 0.3, HISTOGRAM, height), image, manifest, last)


def draw_histogram(axes: Axes, image: np.ndarray, manifest: Manifest, last: bool) -> None:
    """Intensities of tissue, which the background would dwarf; its share, below -0.96, is written above."""
    edges = np.linspace(-1, 1, 51)
    for number, (modality, volume) in enumerate(zip(manifest.modalities, image, strict=True)):
        ink = MODALITY_COLOURS[number % len(MODALITY_COLOURS)]
        axes.hist(volume[volume > edges[1]], edges[1:], histtype="step", color=ink)
        axes.plot([], [], color=ink, label=modality)
    dark, bright = np.mean(image <= edges[1]), np.mean(image >= 1)
    note = f"background {dark:.0%}, clipped {bright:.1%}"
    axes.text(0, 1.2, note, transform=axes.transAxes, fontsize=7, color=MUTED)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=6,
        fontsize=7,
        handlelength=0,
        handletextpad=0,
        columnspacing=1.2,
        labelcolor="linecolor",
        borderpad=0.2,
        borderaxespad=0,
    )
    axes.set(xlim=(-1, 1), yticks=[], xticks=[-1, 0, 1])
    axes.tick_params(labelsize=7, length=2)
    axes.spines["left"].set_visible(False)
    if last:
        axes.set_xlabel("scaled intensity", fontsize=7.5)


def _describe(subject: Subject, sides: Sequence[float]) -> str:
    """``test split, 32 x 32 x 32 voxels of 4 mm, from 240 x 240 x 155 LPS``."""
    same = np.allclose(sides, sides[0], rtol=1e-3)
    spacing = _times(f"{side:.3g}" for side in (sides[:1] if same else sides))
    text = f"{subject.split} split,  {_times(subject.grid.target_shape)} voxels of {spacing} mm"
    if source := subject.sources.get("mask"):
        text += f",  from {_times(source.shape)} {source.orientation}"
    return text


def _times(values: Iterable[object]) -> str:
    return f" {TIMES} ".join(map(str, values))


def _foot(figure: Figure, manifest: Manifest) -> None:
    """Legend of the mask channels, and what the panels are."""
    height = figure.get_figheight()
    lines = [Line2D([], [], color=colour(n), linewidth=1.6, label=name) for n, name in enumerate(manifest.channels)]
    place = (MARGIN / figure.get_figwidth(), (FOOT - 0.06) / height)
    figure.legend(handles=lines, loc="upper left", bbox_to_anchor=place, ncols=8, borderpad=0, borderaxespad=0)
    planes = ", ".join(plane.name for plane in PLANES)
    note = f"{manifest.modalities[0]}: {planes}, where the mask's inner channels are largest.\n{CONVENTION}"
    text_at(figure, MARGIN, height - 0.12, note, fontsize=7, color=MUTED, va="bottom")


if __name__ == "__main__":
    main()
