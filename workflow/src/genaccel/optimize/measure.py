"""Measures one cell: the steps, whole volumes, output and ceilings of one variant at one size and batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from genaccel.device import Device
from genaccel.measurement import Result
from genaccel.optimize.attempt import attempt
from genaccel.optimize.ceilings import measure_ceilings
from genaccel.optimize.energy import Energy, energy_of
from genaccel.optimize.error import relative_errors
from genaccel.optimize.outcome import Failed
from genaccel.optimize.results import ERROR_STEPS, Rows
from genaccel.optimize.spec import Cell, OptimizeJob, TimingSpec
from genaccel.optimize.support import unsupported
from genaccel.optimize.timing import Timing, time_calls
from genaccel.optimize.work import Step, Work, step_work, too_wide
from genaccel.optimize.workload import Workload
from genaccel.variant import STRICT

LEAST_STEPS = 3
LEAST_VOLUMES = 1


@dataclass(frozen=True)
class MeasuredStep:
    """A step's times, its memory at the peak and its work."""

    timing: Timing
    peak_bytes: int
    device_peak_bytes: int | Failed
    work: Work


@dataclass(frozen=True)
class MeasuredVolume:
    """A batch of volumes' times and energy."""

    timing: Timing
    energy: Energy | Failed
    batch: int

    @property
    def energy_per_volume(self) -> float | Failed:
        return self.energy if isinstance(self.energy, Failed) else self.energy.joules / self.batch


@dataclass
class Measured:
    """What a process found.

    Attributes:
        results: rows, less the output's errors where ``predictions`` wait for a reference.
        unsupported: why the device cannot run the variant, where it cannot.
        predictions: predicted noise by step, on the host.
        record: how it was measured, for the provenance.
    """

    results: list[Result]
    unsupported: str | None = None
    predictions: Mapping[int, Tensor] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)


def measure_cell(job: OptimizeJob, cell: Cell, device: Device) -> Measured:
    """Measures a variant in this process, which must be fresh: libraries keep their first choice of kernels.

    Times come before anything else that could disturb them, sampling before training (which holds more memory), and
    the ceilings, which change a flag of precision, last.
    """
    rows, size = Rows(job, cell, device.slug), cell.size(job.model)
    if reason := unsupported(job.switches, device, job.plainer):
        return Measured(rows.all_failed(Failed("unsupported", reason)), unsupported=reason)
    if reason := too_wide(job.model, size, cell.batch):
        return Measured(rows.all_failed(Failed("unsupported", reason)))
    state = device.apply(job.switches)
    device.reset_peak_memory()
    workload = attempt(device, lambda: Workload(job.model, job.switches, device, size, cell.batch, job.seed))
    if isinstance(workload, Failed):
        return Measured(rows.all_failed(workload))

    def step(name: Step, build: Callable[[], Callable[[], Tensor]]) -> MeasuredStep | Failed:
        work = step_work(job.model, size, cell.batch, name)
        return attempt(device, lambda: _step(device, build(), job.timing, work))

    denoise = step("denoise", workload.denoise)
    predictions = attempt(device, lambda: workload.predictions(error_steps(job)))
    volumes = {
        volume: attempt(device, lambda v=volume: _volume(device, workload.volume(v.sampler, v.steps), job, cell))
        for volume in job.volumes
    }
    if job.switches == STRICT and not isinstance(predictions, Failed):
        # Strict FP32 is its own reference: what is left is whether it gives the same twice.
        errors = attempt(device, lambda: relative_errors(predictions, workload.predictions(error_steps(job))))
    else:
        errors = predictions
    workload.release()
    device.free_memory()
    device.reset_peak_memory()
    train = step("train", workload.train)
    device.free_memory()
    ceilings = attempt(device, lambda: measure_ceilings(device, job.switches))
    results = [*rows.step("denoise", denoise, ceilings), *rows.step("train", train, ceilings)]
    results += [row for volume, measured in volumes.items() for row in rows.volume(volume, measured)]
    results += rows.ceilings(ceilings)
    record = {"precision": state, "clock": device.clock, "energy": _energy_record(volumes)}
    if job.switches == STRICT or isinstance(errors, Failed):
        return Measured(results + rows.errors(errors), record=record)
    return Measured(results, predictions=predictions, record=record)


def error_steps(job: OptimizeJob) -> list[int]:
    """The steps at which this model's outputs are compared."""
    return [step for step in ERROR_STEPS if step < job.model.timesteps]


def _step(device: Device, call: Callable[[], Tensor], timing: TimingSpec, work: Work) -> MeasuredStep:
    times = time_calls(device, call, timing, LEAST_STEPS)
    return MeasuredStep(times, device.peak_memory_bytes(), attempt(device, device.used_memory_bytes), work)


def _volume(device: Device, call: Callable[[], Tensor], job: OptimizeJob, cell: Cell) -> MeasuredVolume:
    # The first volume is warm-up enough, which may take a minute: the network's steps were timed before.
    times = time_calls(device, call, job.timing.model_copy(update={"warmup": 0}), LEAST_VOLUMES)
    return MeasuredVolume(times, attempt(device, lambda: energy_of(device, call, times)), cell.batch)


def _energy_record(volumes: Mapping[Any, MeasuredVolume | Failed]) -> dict[str, str]:
    measured = {f"{v.sampler}-{v.steps}": m for v, m in volumes.items() if isinstance(m, MeasuredVolume)}
    return {name: m.energy.method for name, m in measured.items() if isinstance(m.energy, Energy)}
