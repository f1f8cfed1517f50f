"""Prepares a data set: ``python -m genaccel.data --spec JSON --samples TABLE --manifest FILE --volumes FOLDER``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from genaccel.atomic import atomic_directory
from genaccel.command import cpu_threads, stage_errors, stage_parser
from genaccel.data.duplicates import note_duplicates
from genaccel.data.faulty import leave_out
from genaccel.data.manifest import Manifest, write_manifest
from genaccel.data.pool import prepare_all
from genaccel.data.samples import read_table
from genaccel.data.spec import DataJob


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("data", __doc__)
    parser.add_argument("--samples", type=Path, required=True, help="sample table (TSV)")
    parser.add_argument("--manifest", type=Path, required=True, help="JSON to write")
    parser.add_argument("--volumes", type=Path, required=True, help="folder of prepared volumes to write")
    parser.add_argument("--needed", nargs="*", default=(), metavar="SPLIT", help="splits that must not end up empty")
    args = parser.parse_args(argv)
    job = DataJob.parse(args.spec)
    data = job.data
    table = read_table(args.samples, data.modalities)
    samples = table.usable(data.on_error)
    splits = table.splits(data.split)
    relative = os.path.relpath(args.volumes, args.manifest.parent)
    with atomic_directory(args.volumes) as folder:
        tasks = [(sample, splits[sample.subject], data, folder, relative) for sample in samples]
        subjects, faults = prepare_all(tasks, cpu_threads(args.threads))
        subjects = note_duplicates(subjects)
        skipped = leave_out({**table.faults, **faults}, splits, data.on_error, args.needed)
    for subject in subjects:
        for warning in subject.warnings:
            print(f"data: {subject.subject}: {warning}", file=sys.stderr)
    manifest = Manifest(
        dataset=job.dataset,
        kind="real" if data.samples else "simulated",
        modalities=data.modalities,
        channels=tuple(data.labels),
        shape=data.shape,
        subjects=tuple(subjects),
        skipped=skipped,
    )
    write_manifest(args.manifest, manifest)


if __name__ == "__main__":
    with stage_errors("data"):
        main()
