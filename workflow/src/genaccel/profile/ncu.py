"""Runs one step of a workload under Nsight Compute."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from genaccel.profile.counters import wanted
from genaccel.profile.spec import NcuSpec, Phase
from genaccel.spec import SpecError

SECTIONS = (
    *("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "InstructionStats", "SchedulerStats"),
    *("WarpStateStats", "Occupancy", "LaunchStats", "WorkloadDistribution"),
)
"""Sections of the report; their rules estimate what each bottleneck costs."""

CONTROL = {"clock_control": "none", "cache_control": "none", "replay_mode": "kernel"}
"""Clocks as they are and caches as the step leaves them, so that hit rates are the step's own; recorded."""

REFUSALS = {
    "ERR_NVGPUCTRPERM": "ERR_NVGPUCTRPERM: this user may not read hardware counters; ask the administrator for "
    "NVreg_RestrictProfilingToAdminUsers=0",
    "Failed to initialize the profiler": "Nsight Compute could not start its profiler on this machine",
    "Profiling is not supported": "Nsight Compute does not support this device",
    "Driver Resource": "another profiler (DCGM, CUPTI) holds the counters",
}
"""What Nsight Compute prints where it cannot measure here, and the reason that is recorded."""


class Refused(Exception):
    """Nsight Compute is not here, or may not measure; the text is the reason."""


def find_ncu() -> str:
    """Nsight Compute's command, from ``PATH`` or the CUDA toolkit.

    Raises:
        Refused: there is none.
    """
    places = [shutil.which("ncu"), *map(str, sorted(Path("/usr/local").glob("cuda*/bin/ncu"), reverse=True))]
    found = next(filter(None, places), None)
    if found is None:
        raise Refused("Nsight Compute (ncu) was not found in PATH or /usr/local/cuda*/bin")
    return found


def available(ncu: str, names: Sequence[str]) -> list[str]:
    """Those metrics that this device and version have; all where the list of them cannot be read."""
    done = subprocess.run([ncu, "--query-metrics", "--csv"], capture_output=True, text=True, timeout=120, check=False)
    known = {row[0] for row in csv.reader(done.stdout.splitlines()) if row and "__" in row[0]}
    return [name for name in names if not known or name.split(".")[0] in known]


def command(ncu: str, report: Path, step: Sequence[str], functions: Iterable[str], launches: int) -> list[str]:
    """The command line that measures a step.

    Args:
        report: file to write, ``.ncu-rep``.
        step: the command to profile; counts between cudaProfilerStart and cudaProfilerStop.
        functions: names of the kernels to measure, without namespace, template or parameters; none: all.
        launches: to measure, at most.
    """
    names = "|".join(sorted(map(re.escape, functions)))
    chosen = ["--kernel-name", f"regex:^({names})$"] if names else []
    return [
        ncu,
        *("--profile-from-start", "off", "--target-processes", "application-only"),
        *("--clock-control", CONTROL["clock_control"], "--cache-control", CONTROL["cache_control"]),
        *("--replay-mode", CONTROL["replay_mode"]),
        *chosen,
        *("--launch-count", str(launches)),
        *(part for section in SECTIONS for part in ("--section", section)),
        *("--metrics", ",".join(available(ncu, wanted()))),
        *("--force-overwrite", "--export", str(report)),
        *step,
    ]


def step_command(spec: str, phase: Phase) -> list[str]:
    """The child that prepares a workload and runs one step of it between cudaProfilerStart and cudaProfilerStop."""
    return [sys.executable, "-m", "genaccel.profile.step", "--spec", spec, "--phase", phase]


def measure(ncu: str, report: Path, step: Sequence[str], functions: Iterable[str], settings: NcuSpec) -> None:
    """Writes the report of a step.

    Raises:
        Refused: Nsight Compute may not measure here.
        SpecError: it took longer than the settings allow, or no kernel was measured.
        RuntimeError: the step itself failed.
    """
    line = command(ncu, report, step, functions, settings.launches)
    # A group of its own, so that Nsight Compute and the step that it started end together.
    child = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
    try:
        output, _ = child.communicate(timeout=settings.minutes * 60)
    except subprocess.TimeoutExpired:
        raise SpecError(
            f"Nsight Compute did not end within {settings.minutes:g} minutes; raise profile.ncu.minutes, or lower "
            "profile.ncu.launches or profile.size"
        ) from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    for sign, reason in REFUSALS.items():
        if sign in output:
            raise Refused(reason)
    if child.returncode:
        raise RuntimeError(f"{' '.join(line)}\nended with status {child.returncode}:\n{output[-4000:]}")
    if not report.is_file():
        raise SpecError(
            f"Nsight Compute measured no kernel of {', '.join(sorted(functions)) or 'the step'}:\n{output[-1000:]}"
        )
