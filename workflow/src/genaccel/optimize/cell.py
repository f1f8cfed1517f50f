"""Measures one size and batch of a variant in this fresh process: what ``genaccel.optimize`` starts for each."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from safetensors.torch import load_file, save_file

from genaccel.command import stage_errors, stage_parser
from genaccel.device import open_device
from genaccel.optimize.attempt import attempt
from genaccel.optimize.error import relative_errors
from genaccel.optimize.measure import error_steps, measure_cell
from genaccel.optimize.outcome import Failed
from genaccel.optimize.report import Report, write_report
from genaccel.optimize.results import Rows
from genaccel.optimize.spec import Cell, OptimizeJob
from genaccel.optimize.workload import Workload
from genaccel.provenance import provenance
from genaccel.variant import STRICT


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("optimize.cell", __doc__)
    parser.add_argument("--cell", required=True, help="size and batch as JSON")
    parser.add_argument("--report", type=Path, required=True, help="what was found (JSON) to write")
    parser.add_argument("--predictions", type=Path, required=True, help="predicted noise (safetensors)")
    parser.add_argument("--compare", action="store_true", help="compare these predictions with strict FP32's instead")
    args = parser.parse_args(argv)
    with stage_errors("optimize"):
        job, cell = OptimizeJob.parse(args.spec), Cell.parse(args.cell)
        if args.compare:
            write_report(args.report, compare(job, cell, args))
        else:
            write_report(args.report, measure(job, cell, args))


def measure(job: OptimizeJob, cell: Cell, args: Namespace) -> Report:
    """Measures the cell; writes its predictions where it has some."""
    device = open_device(job.device, threads=args.threads)
    before = device.describe()
    if before.get("exclusive") is False:
        print(f"optimize: warning: other processes run on {device.name}; times and energy may be off", flush=True)
    measured = measure_cell(job, cell, device)
    if measured.predictions:
        save_file({str(step): noise.contiguous() for step, noise in measured.predictions.items()}, args.predictions)
    state = measured.record.get("precision") or {"not set": measured.unsupported or "no size or memory to run in"}
    return Report(
        device=device.slug,
        unsupported=measured.unsupported,
        provenance=provenance(device, args.code, precision=state, processes=1),
        record={**cell.case, "device_before": before, "device_after": device.describe(), **measured.record},
        results=tuple(measured.results),
    )


def compare(job: OptimizeJob, cell: Cell, args: Namespace) -> Report:
    """Errors of predictions that another process wrote, against strict FP32 in this one."""
    device = open_device(job.device, threads=args.threads)
    found = {int(step): noise for step, noise in load_file(args.predictions).items()}
    device.apply(STRICT)

    def errors() -> dict[int, float]:
        size = cell.size(job.model)
        workload = Workload(job.model, STRICT, device, size, cell.batch, job.seed)
        return relative_errors(found, workload.predictions(error_steps(job)))

    outcome = attempt(device, errors)
    if isinstance(outcome, Failed):
        outcome = Failed(outcome.status, f"of the reference, strict FP32: {outcome.reason}")
    return Report(device=device.slug, results=tuple(Rows(job, cell).errors(outcome)))


if __name__ == "__main__":
    main()
