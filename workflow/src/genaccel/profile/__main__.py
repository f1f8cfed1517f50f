"""Profiles one variant of one model: one run JSON, and the Chrome trace. Its times are no speeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genaccel.atomic import atomic_file
from genaccel.command import stage_errors, stage_parser
from genaccel.device import Device, open_device
from genaccel.device.base import INERT
from genaccel.measurement import Run, write_run
from genaccel.profile.phase import Profiled, phase_case, profile_phase
from genaccel.profile.results import missing, names_table
from genaccel.profile.spec import PHASES, ProfileJob
from genaccel.profile.trace import joined, write_trace
from genaccel.provenance import provenance


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("profile", __doc__)
    parser.add_argument("--run", type=Path, required=True, help="run JSON to write")
    parser.add_argument("--trace", type=Path, required=True, help="Chrome trace to write (.json.gz)")
    parser.add_argument("--names", type=Path, default=None, help="TSV to write: class and time of every kernel")
    args = parser.parse_args(argv)
    with stage_errors("profile"):
        job = ProfileJob.parse(args.spec)
        device = open_device(job.device, threads=args.threads)
        if reason := lacking(job, device):
            state: dict[str, Any] = job.switches.model_dump(mode="json")
            found = [
                Profiled([missing("profiled_step_time", "s", phase_case(job, p), reason)], None, [], {}) for p in PHASES
            ]
        else:
            state = device.apply(job.switches)
            found = [profile_phase(job, device, phase) for phase in PHASES]
        ncu = {phase: record for phases in found for phase, record in phases.ncu.items()}
        write_trace(args.trace, joined([phase.trace for phase in found if phase.trace]))
        if args.names:
            with atomic_file(args.names) as partial:
                partial.write_text(names_table({p: f.steps for p, f in zip(PHASES, found, strict=True) if f.steps}))
        results = tuple(result for phase in found for result in phase.results)
        write_run(
            args.run,
            Run(
                stage="profile",
                model=job.name,
                variant=job.variant,
                device=device.slug,
                spec=job.model_dump(mode="json"),
                workload=workload(job),
                provenance=provenance(device, args.code, precision=state, processes=1) | {"ncu": ncu},
                results=results,
            ),
        )
        print(f"profile: {len(results)} results of {job.variant} in {args.run}")


def lacking(job: ProfileJob, device: Device) -> str | None:
    """Why the device cannot run the variant; None where it can."""
    reasons = (device.lacks(need) for need in job.switches.needs if need not in INERT)
    return next(filter(None, reasons), None)


def workload(job: ProfileJob) -> dict[str, Any]:
    """The settings that define the work: neither device nor what the profilers were asked."""
    return {
        "model": job.model.model_dump(mode="json"),
        "size": list(job.size),
        "batch": job.profile.batch,
        "seed": job.profile.seed,
    }


if __name__ == "__main__":
    main()
