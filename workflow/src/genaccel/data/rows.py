"""The text of a sample table: its columns and rows, before any file is looked at."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from genaccel.data.faults import InputFault, listing, plural
from genaccel.data.split import SPLITS
from genaccel.spec import nearest

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

Row = tuple[int, dict[str, str]]
"""The line in the file, and the cells by column."""


def read_rows(table: Path, modalities: Sequence[str]) -> list[Row]:
    """The rows of a tab-separated table whose header names ``subject``, ``mask`` and every modality.

    Raises:
        InputFault: a missing table or column; an empty table; a row of the wrong length; two rows of one
            subject; an unknown split; a subject that cannot name a file.
    """
    if not table.is_file():
        raise InputFault(f"there is no sample table {table}.", "Mend the path, or set samples: null to simulate.")
    found = list(_lines(table))
    if not found:
        raise InputFault(f"{table} is empty.", "Give it a header: subject, mask, one column a modality.")
    (_, header), lines = found[0], found[1:]
    _check_header(table, header, modalities)
    if not lines:
        raise InputFault(f"{table} has a header but no subject.", "Add one row a subject.")
    _check_cells(table, header, lines)
    rows = [(line, dict(zip(header, cells, strict=True))) for line, cells in lines]
    _check_unique(table, rows)
    return rows


def _lines(table: Path) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells; utf-8-sig, since spreadsheets put a mark before the first column."""
    with open(table, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter="\t")
        try:
            for row in reader:
                cells = [cell.strip() for cell in row]
                if any(cells) and not cells[0].startswith("#"):
                    yield reader.line_num, cells
        except (UnicodeDecodeError, csv.Error) as error:
            raise InputFault(f"{table} is no text table ({error}).", "Save it as tab-separated UTF-8 text.") from None


def _check_header(table: Path, header: list[str], modalities: Sequence[str]) -> None:
    remedy = f"Its columns are {listing(header)}; add or rename one."
    if len(header) == 1:
        remedy = "It has one column only: separate the columns with tabs."
    for column in ("subject", "mask", *modalities):
        if column not in header:
            raise InputFault(f"{table} has no column `{column}`; {nearest(column, header)}", remedy)
    if twice := [column for column, count in Counter(header).items() if count > 1]:
        raise InputFault(f"{table} has the column `{twice[0]}` more than once.", "Keep one of them.")
    # `split` is optional, so that a misspelt one would be passed over in silence.
    spare = [column for column in header if column not in ("subject", "mask", "split", *modalities)]
    if "split" not in header:
        for column in spare:
            if difflib.SequenceMatcher(None, column.lower(), "split").ratio() > 0.8:
                raise InputFault(f"{table} has a column `{column}`; did you mean `split`?", "Rename it.")


def _check_cells(table: Path, header: list[str], lines: list[tuple[int, list[str]]]) -> None:
    for line, row in lines:
        if len(row) != len(header):
            raise InputFault(
                f"{table} line {line} has {plural(len(row), 'cell')}, the header {len(header)}.",
                "Separate cells with one tab each, and leave none out.",
            )
        record = dict(zip(header, row, strict=True))
        if not SAFE_NAME.fullmatch(record["subject"]):
            raise InputFault(
                f"{table} line {line}: subject {record['subject']!r} cannot name a file.",
                "Use up to 100 letters, digits, `_`, `-` and `.`, a letter or digit first.",
            )
        split = record.get("split")
        if split and split not in SPLITS:
            raise InputFault(
                f"{table} line {line}: unknown split {split!r}; {nearest(split, SPLITS)}",
                "Leave the cell empty to let the shares of `data.split` decide.",
            )


def _check_unique(table: Path, rows: list[Row]) -> None:
    # Without regard to case: some file systems would write both into one file.
    found: dict[str, list[Row]] = {}
    for line, record in rows:
        found.setdefault(record["subject"].casefold(), []).append((line, record))
    twice = [found[name] for name in sorted(found) if len(found[name]) > 1]
    for same in twice:
        if len({record.get("split") for _, record in same}) > 1:
            where = " and ".join(f"{record['split'] or 'none'} (line {line})" for line, record in same)
            raise InputFault(
                f"{table} puts subject {same[0][1]['subject']} into more than one split: {where}.",
                "Keep one of these rows: what is trained on must not be scored.",
            )
    if twice:
        raise InputFault(
            f"{table} names {plural(len(twice), 'subject')} more than once: {listing(list(map(_spelt, twice)))}.",
            "Keep one row a subject, or rename; upper and lower case count as the same.",
        )


def _spelt(same: list[Row]) -> str:
    names = " and ".join(sorted({record["subject"] for _, record in same}))
    return f"{names} (lines {', '.join(str(line) for line, _ in same)})"
