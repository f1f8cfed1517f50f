"""One phase of a profile: its steps under torch.profiler, then one of them under Nsight Compute."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from genaccel.device import Device
from genaccel.measurement import Result
from genaccel.profile.ncu import CONTROL, SECTIONS, Refused, find_ncu, measure, step_command
from genaccel.profile.report import read_report
from genaccel.profile.results import Case, base_case, choose, counter_results, missing, trace_results
from genaccel.profile.spec import Phase, ProfileJob
from genaccel.profile.step import prepare
from genaccel.profile.timeline import Step
from genaccel.profile.trace import Trace, record, steps_of


class Profiled(NamedTuple):
    """What a phase gave.

    Attributes:
        trace: as recorded; None where the step does not fit the device.
        steps: those that count.
        ncu: how the counters were read, for the record.
    """

    results: list[Result]
    trace: Trace | None
    steps: list[Step]
    ncu: dict[str, Any]


def profile_phase(job: ProfileJob, device: Device, phase: Phase) -> Profiled:
    """Profiles a phase; a step that does not fit the device's memory is a result."""
    case = phase_case(job, phase)
    try:
        trace = record(prepare(job, device, phase), phase, job.profile.steps, device)
    except Exception as error:
        if not device.is_out_of_memory(error):
            raise
        reason = str(error).splitlines()[0][:200]
        return Profiled([missing("profiled_step_time", "s", case, reason, "oom")], None, [], {})
    # Nsight Compute starts a process of its own, which needs the memory that this one holds.
    gc.collect()
    device.free_memory()
    steps, of = steps_of(trace)
    results = trace_results(steps, of, case)
    if not job.profile.ncu.launches:
        return Profiled(results, trace, steps, {})
    try:
        if of != "kernels":
            raise Refused(f"{device.name} runs no kernels that Nsight Compute could measure")
        counters, ncu = count(job, phase, steps[-1], case)
    except Refused as refusal:
        counters, ncu = [missing("counter_time", "s", case | {"kernel": "step"}, str(refusal))], {}
    return Profiled(results + counters, trace, steps, ncu)


def count(job: ProfileJob, phase: Phase, step: Step, case: Case) -> tuple[list[Result], dict[str, Any]]:
    """Hardware counters of the kernels that take most of a step.

    Raises:
        Refused: Nsight Compute is not here, or may not measure.
    """
    settings, ncu = job.profile.ncu, find_ncu()
    functions = choose(step, settings.share, settings.launches)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.ncu-rep")
        measure(ncu, report, step_command(job.canonical(), phase), functions, settings)
        launches, reader = read_report(report, ncu)
    record_of = CONTROL | {"command": ncu, "reader": reader, "sections": list(SECTIONS), "kernels": functions}
    return counter_results(launches, step, case), {phase: record_of}


def phase_case(job: ProfileJob, phase: Phase) -> Case:
    return base_case(job.size, job.profile.batch, phase)
