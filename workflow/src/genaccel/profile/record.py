"""Records small reports for the tests and prints real kernel names: run on a GPU with Nsight Compute.

``python -m genaccel.profile.record --out FOLDER`` writes, of a tiny network in two variants, ``<variant>.ncu-rep`` with
its CSV pages, and ``kernel_names.tsv`` of all kernels of a denoising and a training step in every variant asked for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from genaccel.command import stage_errors
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.profile.ncu import find_ncu, measure, step_command
from genaccel.profile.report import read_report
from genaccel.profile.spec import NcuSpec, ProfileJob, ProfileSpec
from genaccel.variants import variant


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m genaccel.profile.record", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--size", type=int, default=64, help="side of the volumes in voxels")
    parser.add_argument("--reports", nargs="*", default=["fp32_strict", "bf16_channels_last"], help="variants, for ncu")
    parser.add_argument("--names", nargs="*", default=[], help="variants, for kernel names")
    parser.add_argument("--launches", type=int, default=6, help="launches in a report")
    args = parser.parse_args(argv)
    with stage_errors("profile.record"):
        args.out.mkdir(parents=True, exist_ok=True)
        for name in args.reports:
            _report(args.out, job(name, args.size), args.launches)
        for name in args.names:
            # A process each: cuDNN keeps its first choice of algorithm for the life of one.
            arguments = ["--spec", job(name, args.size).canonical(), "--run", str(args.out / f"{name}.json")]
            arguments += ["--trace", str(args.out / f"{name}.trace.json.gz"), "--names", str(args.out / f"{name}.tsv")]
            subprocess.run([sys.executable, "-m", "genaccel.profile", *arguments], check=True)


def job(name: str, size: int, launches: int = 0) -> ProfileJob:
    """The published whole-head network at a small size."""
    model = MedDDPMSpec(
        base_channels=64,
        channel_multipliers=(1, 1, 2, 3, 4),
        attention_downsampling=None,
        shape=(size,) * 3,
        image=("t1",),
        condition=("brain", "tumour"),
    )
    profile = ProfileSpec(variants=(), batch=1, ncu=NcuSpec(launches=launches))
    return ProfileJob(
        device="cuda", name="med_ddpm", model=model, variant=name, switches=variant(name), profile=profile
    )


def _report(out: Path, job: ProfileJob, launches: int) -> None:
    ncu, report = find_ncu(), out / f"{job.variant}.ncu-rep"
    measure(ncu, report, step_command(job.canonical(), "denoise"), (), NcuSpec(launches=launches))
    for page in ("raw", "details"):
        line = [ncu, "--import", str(report), "--page", page, "--csv", "--print-units", "base", "--print-fp"]
        (out / f"{job.variant}-{page}.csv").write_text(subprocess.run(line, capture_output=True, text=True).stdout)
    found, reader = read_report(report, ncu)
    print(f"{report}: {report.stat().st_size} bytes, {len(found)} launches, read by {reader}")
    for launch in found:
        print(f"  {launch.name[:100]}: {len(launch.counters)} counters, rules {launch.rules}")


if __name__ == "__main__":
    main()
