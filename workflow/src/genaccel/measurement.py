"""A measurement is one immutable JSON; figures read the tidy table derived from such files."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from genaccel.atomic import atomic_file
from genaccel.spec import Spec, SpecError

SCHEMA_VERSION = 1

COLUMNS = (
    "stage",
    "device",
    "n_devices",
    "model",
    "variant",
    "case",
    "metric",
    "unit",
    "value",
    "status",
    "reason",
    "repeat",
    "n",
    "seed",
    "workload_sha256",
    "spec_sha256",
    "run_id",
)

CELL = ("stage", "device", "n_devices", "model", "variant", "case", "metric")
"""Columns that say what was measured; under one spec only."""

Scalar = str | int | float | bool | None


class Result(Spec):
    """One metric in one case: its raw repeats, or why there are none."""

    metric: str
    unit: str = Field(description="SI unit, or 1 for a ratio")
    case: dict[str, str | int | float] = Field(
        default={}, description="what tells this cell from others: size, batch..."
    )
    values: tuple[float, ...] = Field(default=(), description="raw repeats, in order, warm-up left out")
    first_call: float | None = Field(default=None, description="the very first call, compilation and all")
    warmup: tuple[float, ...] = Field(default=(), description="calls between the first and the repeats")
    status: Literal["ok", "oom", "unsupported"] = "ok"
    reason: str = ""
    n: int | None = Field(default=None, description="samples behind each value, where it is a statistic")
    seed: int | None = None

    @model_validator(mode="after")
    def _check(self) -> Result:
        if self.status == "ok" and not self.values:
            raise ValueError(f"{self.metric} is `ok` without a value; give values, or a status with its reason")
        if self.status != "ok" and (self.values or not self.reason):
            raise ValueError(f"{self.metric} is `{self.status}`; such a result has a reason and no values")
        if not all(map(math.isfinite, self.values)):
            raise ValueError(f"{self.metric} holds a value that is not finite; a failed measurement has no JSON")
        return self


class Run(Spec):
    """All that one measuring job found, with what it takes to repeat it."""

    schema_version: int = SCHEMA_VERSION
    run_id: str = ""
    stage: str
    model: str
    variant: str
    device: str = Field(description="slug of the device's model, e.g. nvidia-h200; table key and folder name")
    n_devices: int = Field(default=1, ge=1)
    spec: dict[str, Any] = Field(description="the resolved settings")
    workload: dict[str, Any] = Field(description="the settings that define the work: no device, path or repeat count")
    provenance: dict[str, Any]
    results: tuple[Result, ...]

    @property
    def spec_sha256(self) -> str:
        return _sha256(self.spec)

    @property
    def workload_sha256(self) -> str:
        return _sha256(self.workload)


def write_run(path: str | os.PathLike[str], run: Run) -> None:
    """Writes a run as JSON with its content's hash as ``run_id``; appears whole or not at all."""
    content = run.model_dump(mode="json", exclude={"run_id"})
    content["run_id"] = _sha256(content)[:16]
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def read_run(path: str | os.PathLike[str]) -> Run:
    """Reads a run's JSON.

    Raises:
        SpecError: not such a JSON, written by another schema version, or changed since it was written.
    """
    try:
        content = json.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SpecError(f"{path}: not a readable run JSON ({error}); write it again with its rule") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != SCHEMA_VERSION:
        raise SpecError(
            f"{path}: schema_version {version!r}, but this code reads {SCHEMA_VERSION}; measure again, "
            "or use the genaccel version that wrote it"
        )
    run = Run.build(content, where=str(path))
    body = {key: value for key, value in content.items() if key != "run_id"}
    if _sha256(body)[:16] != run.run_id:
        raise SpecError(f"{path}: content does not match its run_id {run.run_id}; it was edited. Measure again")
    return run


def case_text(case: Mapping[str, Scalar]) -> str:
    """``{"size": 128, "batch": 1}`` -> ``batch=1;size=128``.

    Raises:
        ValueError: a key or value holds ``;`` or ``=``, which the text could not give back.
    """
    parts = []
    for key in sorted(case):
        value = f"{case[key]:g}" if isinstance(case[key], float) else str(case[key])
        if set(";=") & set(key + value):
            raise ValueError(f"case {key}={value} holds `;` or `=`, which separate its parts; rename it")
        parts.append(f"{key}={value}")
    return ";".join(parts)


def parse_case(text: str) -> dict[str, str]:
    """The inverse of ``case_text``, values as text."""
    return dict(part.split("=", 1) for part in text.split(";") if part)


def tidy_rows(run: Run) -> Iterator[dict[str, Scalar]]:
    """One row a repeat; a result without values has one row with its status and reason."""
    for result in run.results:
        for repeat, value in enumerate(result.values or (None,)):
            yield {
                "stage": run.stage,
                "device": run.device,
                "n_devices": run.n_devices,
                "model": run.model,
                "variant": run.variant,
                "case": case_text(result.case),
                "metric": result.metric,
                "unit": result.unit,
                "value": value,
                "status": result.status,
                "reason": result.reason,
                "repeat": repeat,
                "n": result.n,
                "seed": result.seed,
                "workload_sha256": run.workload_sha256,
                "spec_sha256": run.spec_sha256,
                "run_id": run.run_id,
            }


def merge_runs(paths: Iterable[str | os.PathLike[str]]) -> list[dict[str, Scalar]]:
    """The rows of all runs, sorted; equal workloads stand beside each other whatever device ran them.

    Raises:
        SpecError: one cell measured under two specs, naming both files.
    """
    seen: dict[tuple[Scalar, ...], tuple[str, str]] = {}
    rows: list[dict[str, Scalar]] = []
    known: set[str] = set()
    for path in sorted(map(str, paths)):
        run = read_run(path)
        if run.run_id in known:
            continue
        known.add(run.run_id)
        for row in tidy_rows(run):
            cell = tuple(row[column] for column in CELL)
            spec, other = seen.setdefault(cell, (run.spec_sha256, path))
            if spec != run.spec_sha256:
                raise SpecError(
                    f"{path} and {other} both measure {row['metric']} of {row['model']}/{row['variant']} on "
                    f"{row['device']} ({row['case']}), under different settings; keep one of the two"
                )
            rows.append(row)
    # Sorting is stable: the repeats of a run stay in the order in which they were measured.
    return sorted(rows, key=lambda row: [str(row[column]) for column in (*CELL, "run_id")])


def write_table(path: str | os.PathLike[str], rows: Sequence[Mapping[str, Scalar]]) -> None:
    """Writes the tidy table as CSV; empty where a value is missing."""
    with atomic_file(path) as partial, open(partial, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _sha256(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
