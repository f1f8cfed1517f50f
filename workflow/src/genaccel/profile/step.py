"""Runs one step of a workload between cudaProfilerStart and cudaProfilerStop: what Nsight Compute looks at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from genaccel.command import stage_errors, stage_parser
from genaccel.device import Device, open_device
from genaccel.optimize.workload import Workload
from genaccel.profile.spec import PHASES, Phase, ProfileJob


def main(argv: Sequence[str] | None = None) -> None:
    parser = stage_parser("profile.step", __doc__)
    parser.add_argument("--phase", choices=PHASES, required=True)
    args = parser.parse_args(argv)
    with stage_errors("profile.step"):
        job = ProfileJob.parse(args.spec)
        device = open_device(job.device, threads=args.threads)
        step = prepare(job, device, args.phase)
        with device.counted():
            step()


def prepare(job: ProfileJob, device: Device, phase: Phase) -> Callable[[], object]:
    """The step of a phase after its warm-up: what is compiled is compiled, what is chosen is chosen."""
    device.apply(job.switches)
    workload = Workload(job.model, job.switches, device, job.size, job.profile.batch, job.profile.seed)
    step = {"denoise": workload.denoise, "train": workload.train}[phase]()
    for _ in range(job.profile.warmup):
        step()
    device.synchronize()
    return step


if __name__ == "__main__":
    main()
