"""One fresh process a cell, and one more for its reference; this one never opens the device."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from genaccel.optimize.report import Report, read_report
from genaccel.optimize.spec import Cell, OptimizeJob
from genaccel.spec import SpecError

MODULE = "genaccel.optimize.cell"


def run_cell(job: OptimizeJob, cell: Cell, code: str, threads: int | None) -> Report:
    """Measures a cell, and compares its output with strict FP32's in a process after it.

    Raises:
        SpecError: a process ended without a report; its own message is on stderr.
    """
    with tempfile.TemporaryDirectory(prefix="genaccel-optimize-") as folder:
        predictions = Path(folder, "predictions.safetensors")
        options = ["--cell", cell.canonical(), "--predictions", str(predictions)]
        report = _start(job, cell, [*options, "--code", code], Path(folder, "cell.json"), threads)
        if predictions.is_file():
            compared = _start(job, cell, [*options, "--compare"], Path(folder, "compared.json"), threads)
            report = report.model_copy(update={"results": (*report.results, *compared.results)})
    return report


def _start(job: OptimizeJob, cell: Cell, options: Sequence[str], report: Path, threads: int | None) -> Report:
    command = [sys.executable, "-m", MODULE, "--spec", job.canonical(), "--report", str(report), *options]
    if threads:
        command += ["--threads", str(threads)]
    status = subprocess.run(command, check=False).returncode
    if status:
        raise SpecError(f"{job.name} {job.variant} at {_where(cell)}: {_how(status)}")
    return read_report(report)


def _where(cell: Cell) -> str:
    return ", ".join(f"{key} {value}" for key, value in cell.case.items())


def _how(status: int) -> str:
    if status > 0:
        return f"its process failed with exit status {status}; the lines above say why"
    name = signal.Signals(-status).name
    killed = (
        ": the host's memory may have run out; raise mem_mb, or measure a smaller size" if name == "SIGKILL" else ""
    )
    return f"its process was killed by {name}{killed}"
