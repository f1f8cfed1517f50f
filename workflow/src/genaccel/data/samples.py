"""The sample table: which files belong to which subject."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from genaccel.data.faults import InputFault, lines, listing, plural
from genaccel.data.split import SPLITS, Split
from genaccel.spec import nearest

SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Sample:
    """One subject's files; ``images`` by modality, ``split`` where the table fixes it."""

    subject: str
    mask: Path
    images: dict[str, Path]
    split: Split | None = None

    @property
    def files(self) -> dict[str, Path]:
        """Every file by the table's column: ``mask`` first, then the modalities."""
        return {"mask": self.mask, **self.images}


def read_samples(table: Path, modalities: Sequence[str]) -> list[Sample]:
    """Reads a sample table.

    Tab-separated, with a header: ``subject``, ``mask``, one column a modality, optionally ``split``. Lines
    that begin with # and blank lines do not count. Relative paths start at the working directory or,
    where nothing lies there, at the table's folder.

    Returns:
        One sample a subject, sorted by name, so that the table's order decides nothing.

    Raises:
        InputFault: a missing table, column or file; an empty table; a row of the wrong length; two rows of
            one subject; an unknown split; a subject that cannot name a file.
    """
    if not table.is_file():
        raise InputFault(f"there is no sample table {table}.", "Mend the path, or set samples: null to simulate.")
    found = list(_rows(table))
    if not found:
        raise InputFault(f"{table} is empty.", "Give it a header: subject, mask, one column a modality.")
    (_, header), rows = found[0], found[1:]
    _check_header(table, header, modalities)
    if not rows:
        raise InputFault(f"{table} has a header but no subject.", "Add one row a subject.")
    _check_rows(table, header, rows)
    records = [dict(zip(header, row, strict=True)) for _, row in rows]
    _check_unique(table, [record["subject"] for record in records])
    samples = [_sample(table, record, modalities) for record in records]
    _check_files(table, samples)
    _check_shared(table, samples)
    return sorted(samples, key=lambda sample: sample.subject)


def _rows(table: Path) -> Iterator[tuple[int, list[str]]]:
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


def _check_rows(table: Path, header: list[str], rows: list[tuple[int, list[str]]]) -> None:
    for line, row in rows:
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


def _check_unique(table: Path, subjects: list[str]) -> None:
    if twice := sorted(subject for subject, count in Counter(subjects).items() if count > 1):
        raise InputFault(
            f"{table} names {plural(len(twice), 'subject')} more than once: {listing(twice)}.",
            "Keep one row a subject, or rename.",
        )


def _sample(table: Path, record: dict[str, str], modalities: Sequence[str]) -> Sample:
    paths = {column: _locate(table, record[column]) for column in ("mask", *modalities)}
    mask = paths.pop("mask")
    return Sample(record["subject"], mask, paths, record.get("split") or None)


def _locate(table: Path, cell: str) -> Path:
    path = Path(cell)
    beside = table.parent / path
    return beside if not path.exists() and beside.exists() else path


def _check_files(table: Path, samples: Sequence[Sample]) -> None:
    missing = []
    for sample in samples:
        for column, path in sample.files.items():
            if not path.is_file():
                shown = "no file given" if path == Path() else str(path)
                missing.append(f"{sample.subject} {column}: {shown}")
    if missing:
        raise InputFault(
            f"{table}: {plural(len(missing), 'file')} missing, both in the working directory and beside the table:"
            + "".join(f"\n        {line}" for line in lines(missing)),
            "Mend the paths, or take these subjects out.",
        )


def _check_shared(table: Path, samples: Sequence[Sample]) -> None:
    """A file in two cells is a slip of the hand, and would put one image into train and test alike."""
    cells: dict[Path, list[str]] = {}
    for sample in samples:
        for column, path in sample.files.items():
            cells.setdefault(path, []).append(f"{sample.subject} {column}")
    if shared := {path: names for path, names in cells.items() if len(names) > 1}:
        path, names = next(iter(shared.items()))
        raise InputFault(
            f"{table} names {path} {len(names)} times: {listing(names)}.",
            "Give every subject and column a file of its own.",
        )
