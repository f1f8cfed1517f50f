"""Simulates subjects: ``python -m genaccel.data.simulate --spec JSON --out FOLDER``."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from tqdm import trange

from genaccel.atomic import atomic_directory
from genaccel.command import stage_errors, stage_parser
from genaccel.data.simulate.subject import simulate_subject
from genaccel.data.simulate.template import load_template
from genaccel.data.spec import SimulateJob


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("data.simulate", __doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write: NIfTI files and samples.tsv")
    args = parser.parse_args(argv)
    job = SimulateJob.parse(args.spec)
    template = load_template(job.simulated.spacing)
    rows = []
    with atomic_directory(args.out) as out:
        for index in trange(job.simulated.subjects, desc="simulated subjects", unit="subject"):
            subject = f"sim-{index:04d}"
            mask, images = simulate_subject(job, template, index)
            row = {"subject": subject}
            for column, array in {"mask": mask, **images}.items():
                row[column] = f"{subject}_{column}.nii.gz"
                write_nifti(out / row[column], array, template.affine)
            rows.append(row)
        with open(out / "samples.tsv", "w", newline="") as file:
            file.write("# Simulated subjects: warps of the MNI152 template with synthetic tumours.\n")
            writer = csv.DictWriter(file, rows[0], delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def write_nifti(path: Path, array: NDArray, affine: NDArray[np.float64]) -> None:
    """Writes .nii.gz, saying inside that it is simulated; the same array gives the same bytes."""
    image = nib.Nifti1Image(array, affine)
    image.header.set_xyzt_units("mm")
    image.header["descrip"] = b"simulated by genaccel from MNI152"
    # Level 1: these files are read once. mtime=0: a time stamp would change their hash.
    path.write_bytes(gzip.compress(image.to_bytes(), compresslevel=1, mtime=0))


if __name__ == "__main__":
    with stage_errors("data"):
        main()
