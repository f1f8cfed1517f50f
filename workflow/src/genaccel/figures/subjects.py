"""Writes a page about a data set: its subjects by split, what was made of their files, warnings, who was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from genaccel.command import stage_errors
from genaccel.data.manifest import Manifest, Source, Subject, read_manifest
from genaccel.figures.page import Cell, count, facts, paragraph, section, table, write_page
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import TIMES, figure_parser

SPLITS = ("train", "validation", "test")


def main(argv: Sequence[str] | None = None) -> None:
    parser = figure_parser("subjects", __doc__)
    parser.add_argument("--manifest", type=Path, required=True, help="manifest of the stage `data`")
    args = parser.parse_args(argv)
    with stage_errors("figures.subjects"):
        job, manifest = FigureJob.parse(args.spec), read_manifest(args.manifest)
        write_page(args.out, f"Data set {job.title}", *page(manifest))


def page(manifest: Manifest) -> Iterator[str]:
    """The parts of the page, first what needs a look."""
    yield section("Overview", facts(_overview(manifest)))
    yield section(f"Left out ({len(manifest.skipped)})", _skipped(manifest))
    warned = [subject for subject in manifest.subjects if subject.warnings]
    yield section(f"Warnings ({sum(len(subject.warnings) for subject in warned)})", _warnings(warned))
    yield section(f"Subjects ({len(manifest.subjects)})", _subjects(manifest))


def _overview(manifest: Manifest) -> dict[str, Cell]:
    splits = Counter(subject.split for subject in manifest.subjects)
    kind = "simulated subjects: warped copies of a template, no person's images"
    return {
        "Kind": Cell("real subjects" if manifest.kind == "real" else kind),
        "Subjects": Cell(", ".join(f"{splits[split]} {split}" for split in SPLITS)),
        "Left out": Cell(str(len(manifest.skipped)), "warning" if manifest.skipped else "text"),
        "Modalities": Cell(", ".join(manifest.modalities)),
        "Mask channels": Cell(", ".join(manifest.channels)),
        "Prepared grid": Cell(f"{_times(manifest.shape)} voxels (R {TIMES} A {TIMES} S)"),
        "Sources": Cell("; ".join(_layouts(manifest))),
    }


def _layouts(manifest: Manifest) -> Iterator[str]:
    """The kinds of files that there are, the most frequent first."""
    layouts = Counter(_layout(source) for subject in manifest.subjects for source in subject.sources.values())
    most = layouts.most_common(5)
    yield from (f"{number} files {layout}" for layout, number in most)
    if len(layouts) > len(most):
        yield f"and {len(layouts) - len(most)} other layouts"


def _skipped(manifest: Manifest) -> str:
    if not manifest.skipped:
        return paragraph("No subject was left out.", "muted")
    rows = ([Cell(skipped.subject), Cell(skipped.reason, "warning")] for skipped in manifest.skipped)
    return table(("subject", "why it is in no split"), rows)


def _warnings(warned: Sequence[Subject]) -> str:
    if not warned:
        return paragraph("None.", "muted")
    rows = ([Cell(subject.subject), Cell(text, "warning")] for subject in warned for text in subject.warnings)
    return table(("subject", "what to look at"), rows)


def _subjects(manifest: Manifest) -> str:
    note = "Voxels of each mask channel on the prepared grid, and in brackets on the mask's own."
    head = ("subject", "split", *manifest.channels, "sources: voxels, spacing in mm, orientation", "warnings")
    return paragraph(note, "muted") + table(head, (_row(subject, manifest) for subject in manifest.subjects))


def _row(subject: Subject, manifest: Manifest) -> Iterator[Cell]:
    yield Cell(subject.subject)
    yield Cell(subject.split)
    for channel in manifest.channels:
        here, there = subject.label_voxels.get(channel, 0), subject.source_label_voxels.get(channel, 0)
        yield Cell(f"{here:,} ({there:,})", "number" if here else "warning")
    yield Cell("; ".join(_sources(subject)))
    yield count(len(subject.warnings)) if subject.warnings else Cell("")


def _sources(subject: Subject) -> Iterator[str]:
    """Files of one layout together, as nearly all are."""
    names: dict[str, list[str]] = {}
    for name, source in subject.sources.items():
        names.setdefault(_layout(source), []).append(name)
    yield from (f"{', '.join(sorted(found))}: {layout}" for layout, found in names.items())


def _layout(source: Source) -> str:
    return f"{_times(source.shape)}, {_times(f'{side:.3g}' for side in source.spacing)}, {source.orientation}"


def _times(values: Iterable[object]) -> str:
    return f" {TIMES} ".join(map(str, values))


if __name__ == "__main__":
    main()
