"""Measures one variant: steps, volumes, memory, energy, output error, at every size and batch; one run JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from genaccel.command import stage_errors, stage_parser
from genaccel.measurement import Result, Run, case_text, write_run
from genaccel.optimize.outcome import Failed
from genaccel.optimize.processes import run_cell
from genaccel.optimize.report import Report
from genaccel.optimize.results import Rows
from genaccel.optimize.spec import OptimizeJob
from genaccel.ownership import own_devices

SHOWN = ("denoise_step_time", "train_step_time", "volume_time", "energy_per_volume", "output_rel_error")


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("optimize", __doc__)
    parser.add_argument("--run", type=Path, required=True, help="run JSON to write")
    args = parser.parse_args(argv)
    with stage_errors("optimize"):
        job = OptimizeJob.parse(args.spec)
        # All cells on one device, and none between two of them for others.
        own_devices(job.device, 1)
        reports = list(measure(job, args.code, args.threads))
        write_run(args.run, run_of(job, reports))
        print(f"optimize: {sum(len(report.results) for report in reports)} results in {args.run}")


def measure(job: OptimizeJob, code: str, threads: int | None) -> Iterator[Report]:
    """Every cell's report; what the device cannot run at one size it is not asked for at the next."""
    reason = None
    for cell in job.cells():
        if reason:
            report = Report(device="", results=tuple(Rows(job, cell).all_failed(Failed("unsupported", reason))))
        else:
            report = run_cell(job, cell, code, threads)
            if reason := report.unsupported:
                print(f"optimize: {job.variant} is not measured: {reason}", flush=True)
        for line in filter(None, map(_line, report.results)):
            print(f"optimize: {job.variant}: {line}", flush=True)
        yield report


def run_of(job: OptimizeJob, reports: Sequence[Report]) -> Run:
    """All cells as one run; the first process's provenance, with what each cell recorded."""
    first = reports[0]
    return Run(
        stage="optimize",
        model=job.name,
        variant=job.variant,
        device=first.device,
        spec=job.model_dump(mode="json"),
        workload=job.workload(),
        provenance=first.provenance | {"cells": [report.record for report in reports if report.record]},
        results=tuple(result for report in reports for result in report.results),
    )


def _line(result: Result) -> str | None:
    if result.metric not in SHOWN or result.status == "unsupported":
        return None
    shown = f"{median(result.values):.4g} {result.unit}" if result.values else f"{result.status}: {result.reason}"
    return f"{result.metric} ({case_text(result.case)}) {shown}"


if __name__ == "__main__":
    main()
