"""The sample table: which files belong to which subject, and which of them are there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from genaccel.data.faults import InputFault, lines, listing, plural
from genaccel.data.rows import read_rows
from genaccel.data.spec import SplitSpec
from genaccel.data.split import Split, split_subjects

Identify = Callable[[Path], tuple[int, int] | None]


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


@dataclass(frozen=True)
class SampleTable:
    """A sample table without a fault of its own.

    Attributes:
        rows: every subject, sorted by name, so that the table's order decides nothing.
        missing: by subject, columns whose files are not there.
    """

    path: Path
    rows: tuple[Sample, ...]
    missing: Mapping[str, list[str]]

    @property
    def faults(self) -> dict[str, InputFault]:
        """By name, the subjects whose files are not all there."""
        return {
            sample.subject: InputFault(
                f"lacks {plural(len(self.missing[sample.subject]), 'file')}: {', '.join(self._missing(sample))}.",
                "Mend the sample table or the folder.",
            )
            for sample in self.rows
            if sample.subject in self.missing
        }

    def usable(self, on_error: Literal["stop", "skip"]) -> list[Sample]:
        """Subjects whose files are all there.

        Raises:
            InputFault: files are missing, of any subject to stop at it, of all to skip it.
        """
        present = [sample for sample in self.rows if sample.subject not in self.missing]
        if self.missing and (on_error == "stop" or not present):
            missing = [f"{sample.subject} {line}" for sample in self.rows for line in self._missing(sample)]
            raise InputFault(
                f"{self.path}: {plural(len(missing), 'file')} missing, in the working directory and beside the table:"
                + "".join(f"\n        {line}" for line in lines(missing)),
                "Mend the paths, or take these subjects out"
                + ("." if on_error == "skip" else "; `data.<name>.on_error: skip` leaves them out."),
            )
        return present

    def splits(self, spec: SplitSpec) -> dict[str, Split]:
        """The split of every row, usable or not: who is left out must not move the others."""
        given = {sample.subject: sample.split for sample in self.rows if sample.split}
        return split_subjects([sample.subject for sample in self.rows], spec, given)

    def _missing(self, sample: Sample) -> list[str]:
        paths = {column: sample.files[column] for column in self.missing.get(sample.subject, ())}
        return [f"{column}: {'no file given' if path == Path() else path}" for column, path in paths.items()]


def read_table(table: Path, modalities: Sequence[str]) -> SampleTable:
    """Reads a sample table.

    Tab-separated, with a header: ``subject``, ``mask``, one column a modality, optionally ``split``. Lines
    that begin with # and blank lines do not count. Relative paths start at the working directory or,
    where nothing lies there, at the table's folder.

    Raises:
        InputFault: a missing table or column; an empty table; a row of the wrong length; two rows of one
            subject; a file in two cells; an unknown split; a subject that cannot name a file.
    """
    identify = cache(_identity)
    samples = [_sample(table, record, modalities, identify) for _, record in read_rows(table, modalities)]
    samples.sort(key=lambda sample: sample.subject)
    _check_shared(table, samples, identify)
    absent = {s.subject: [column for column, path in s.files.items() if identify(path) is None] for s in samples}
    return SampleTable(table, tuple(samples), {subject: columns for subject, columns in absent.items() if columns})


def read_samples(table: Path, modalities: Sequence[str], on_error: Literal["stop", "skip"] = "stop") -> list[Sample]:
    """The subjects of a table whose files are all there, sorted by name.

    Args:
        on_error: ``DataSpec.on_error``.

    Raises:
        InputFault: as for ``read_table`` and ``SampleTable.usable``.
    """
    return read_table(table, modalities).usable(on_error)


def _sample(table: Path, record: dict[str, str], modalities: Sequence[str], identify: Identify) -> Sample:
    paths = {column: _locate(table, record[column], identify) for column in ("mask", *modalities)}
    mask = paths.pop("mask")
    return Sample(record["subject"], mask, paths, record.get("split") or None)


def _locate(table: Path, cell: str, identify: Identify) -> Path:
    path = Path(cell)
    beside = table.parent / path
    return beside if identify(path) is None and identify(beside) is not None else path


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none, or behind a folder that is closed to this user."""
    try:
        found = path.stat()
    # A disk or network that fails is no fault of the table, and stays the error that it is.
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _check_shared(table: Path, samples: Sequence[Sample], identify: Identify) -> None:
    """A file in two cells is a slip of the hand, and would put one image into train and test alike."""
    cells: dict[tuple[int, int], list[tuple[str, Path]]] = {}
    for sample in samples:
        for column, path in sample.files.items():
            if identity := identify(path):
                cells.setdefault(identity, []).append((f"{sample.subject} {column}", path))
    for shared in cells.values():
        # However it is written, and through links. On some network file systems other files may share the number.
        if len(shared) > 1 and len({os.path.realpath(path) for _, path in shared}) == 1:
            first = shared[0][1]
            names = [name if path == first else f"{name} as {path}" for name, path in shared]
            raise InputFault(
                f"{table} names {first} {len(shared)} times: {listing(names)}.",
                "Give every subject and column a file of its own.",
            )
