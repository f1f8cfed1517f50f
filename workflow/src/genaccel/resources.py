"""Tables of facts in ``workflow/resources``: CSV with comment lines before the header."""

from __future__ import annotations

import csv
from pathlib import Path

from genaccel.code import ROOT
from genaccel.spec import SpecError

FOLDER = ROOT.parent / "resources"


def read_resource(name: str, folder: Path = FOLDER) -> list[dict[str, str]]:
    """The rows of a table; an empty cell is an empty text.

    Raises:
        SpecError: there is no such table, or a row does not have the header's cells.
    """
    path = folder / name
    if not path.is_file():
        raise SpecError(f"there is no {path}; `git checkout` brings it back")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise SpecError(f"{path}: row {number} ({next(iter(row.values()))}) has not the header's number of cells")
    return rows
