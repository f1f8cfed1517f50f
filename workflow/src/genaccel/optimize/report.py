"""What a measuring process hands to the one that started it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from genaccel.atomic import atomic_file
from genaccel.measurement import Result
from genaccel.spec import Spec


class Report(Spec):
    """Results of one cell.

    ``unsupported`` says why the device cannot run the variant at any size; ``record`` is the cell's part of the
    provenance, and ``provenance`` that of the whole job.
    """

    device: str
    unsupported: str | None = None
    provenance: dict[str, Any] = Field(default_factory=dict)
    record: dict[str, Any] = Field(default_factory=dict)
    results: tuple[Result, ...]


def write_report(path: Path, report: Report) -> None:
    with atomic_file(path) as partial:
        partial.write_text(report.canonical())


def read_report(path: Path) -> Report:
    return Report.parse(path.read_text())
