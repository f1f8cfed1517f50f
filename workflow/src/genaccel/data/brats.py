"""Makes a sample table from a BraTS folder: ``python -m genaccel.data.brats FOLDER > config/samples.tsv``."""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from genaccel.command import stage_errors
from genaccel.data.faults import InputFault, lines, plural

# What BraTS calls its files, 2018-2021 first, then 2023; t1n is the native T1.
COLUMNS = {
    "mask": ("seg",),
    "t1": ("t1", "t1n"),
    "t1ce": ("t1ce", "t1c"),
    "t2": ("t2", "t2w"),
    "flair": ("flair", "t2f"),
}
COLUMN_OF = {ending: column for column, endings in COLUMNS.items() for ending in endings}
NAME = re.compile(rf"(?P<subject>.+)[_-](?P<ending>{'|'.join(COLUMN_OF)})\.nii(\.gz)?", re.IGNORECASE)


def brats_table(folder: Path) -> list[dict[str, str]]:
    """One row a subject: ``subject``, ``mask``, ``t1``, ``t1ce``, ``t2``, ``flair``; sorted by subject.

    Files are told apart by their names alone, wherever they lie below ``folder``: one folder a subject, or
    all in one. Paths begin with ``folder`` as it was given.

    Raises:
        InputFault: no such folder, no such files, subjects with a file missing or given twice.
    """
    if not folder.is_dir():
        raise InputFault(f"there is no folder {folder}.", "Give the folder that BraTS was unpacked into.")
    found: dict[str, dict[str, list[Path]]] = {}
    for path in sorted(folder.rglob("*.nii*")):
        match = NAME.fullmatch(path.name)
        if match and path.is_file() and not path.name.startswith("."):
            column = COLUMN_OF[match["ending"].lower()]
            found.setdefault(match["subject"], {}).setdefault(column, []).append(path)
    if not found:
        raise InputFault(
            f"{folder} holds no BraTS files.",
            "They are named SUBJECT_seg.nii.gz, with _t1, _t1ce, _t2 and _flair, or -seg, -t1n, -t1c, -t2w and -t2f.",
        )
    faults = [fault for subject in sorted(found) for fault in _faults(subject, found[subject])]
    if faults:
        raise InputFault(
            "\n        ".join(
                [f"{folder} holds {plural(len(found), 'subject')}, some not as they should be:", *lines(faults)]
            ),
            "Add or remove these files, or move the subjects elsewhere.",
        )
    return [
        {"subject": subject, **{column: str(found[subject][column][0]) for column in COLUMNS}}
        for subject in sorted(found)
    ]


def _faults(subject: str, files: dict[str, list[Path]]) -> list[str]:
    missing = [f"{column} ({' or '.join(COLUMNS[column])})" for column in COLUMNS if column not in files]
    faults = [f"{subject} has no {', '.join(missing)}"] if missing else []
    for column, paths in files.items():
        if len(paths) > 1:
            faults.append(f"{subject} has {len(paths)} files for {column}: {', '.join(map(str, paths))}")
    return faults


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m genaccel.data.brats", description=__doc__)
    parser.add_argument("folder", type=Path, help="where BraTS was unpacked; 2018-2021 or 2023 file names")
    args = parser.parse_args(argv)
    rows = brats_table(args.folder)
    writer = csv.DictWriter(sys.stdout, ["subject", *COLUMNS], delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    with stage_errors("data"):
        main()
