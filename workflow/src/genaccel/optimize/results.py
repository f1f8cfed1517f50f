"""Rows of the tidy table, from what one process measured.

Metrics and cases, all with ``size`` and ``batch``:

- ``denoise_step_time``, ``train_step_time`` (s), a value a repeat; ``volume_time`` (s; ``sampler``, ``steps``) of the
  whole batch, ``energy_per_volume`` (J; the same case) of one volume of it;
- with ``step=denoise|train``: ``peak_memory`` (B, of this process), ``device_peak_memory`` (B, in use on the whole
  device after the steps, when the allocator still holds what it took at the peak), ``flops`` (FLOP, counted),
  ``achieved_flops`` (FLOP/s, at the median time), ``ceiling_share`` and ``roofline_share`` (1);
- ``matmul_ceiling`` (FLOP/s) and ``memory_ceiling`` (B/s) of the same process;
- ``output_rel_error`` (1; ``t``): L2 norm of the difference of the predicted noise to strict FP32's, over the latter's.

This module imports no torch: the process that starts the measuring ones does without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from genaccel.measurement import Result
from genaccel.optimize.outcome import Failed
from genaccel.optimize.roofline import Roofline, check_peak, roofline
from genaccel.optimize.spec import Cell, OptimizeJob, VolumeWork

if TYPE_CHECKING:
    from genaccel.optimize.ceilings import Ceilings
    from genaccel.optimize.measure import MeasuredStep, MeasuredVolume

STEPS = ("denoise", "train")
ERROR_STEPS = (5, 125, 245)
"""Steps of the diffusion at which outputs are compared, as far as the schedule has them."""

UNITS = {
    "denoise_step_time": "s",
    "train_step_time": "s",
    "volume_time": "s",
    "energy_per_volume": "J",
    "peak_memory": "B",
    "device_peak_memory": "B",
    "flops": "FLOP",
    "achieved_flops": "FLOP/s",
    "matmul_ceiling": "FLOP/s",
    "memory_ceiling": "B/s",
}
OF_A_STEP = ("peak_memory", "device_peak_memory", "flops", "achieved_flops", "ceiling_share", "roofline_share")

Case = Mapping[str, str | int]


class Rows:
    """Makes the results of one cell.

    Args:
        job: settings.
        cell: size and batch.
        slug: of the device.
    """

    def __init__(self, job: OptimizeJob, cell: Cell, slug: str = "") -> None:
        self.job, self.cell, self.slug = job, cell, slug

    def all_failed(self, failed: Failed) -> list[Result]:
        """Every row that the cell would have, with the reason why it has no value."""
        rows = [row for step in STEPS for row in self.step(step, failed, failed)]
        rows += [row for volume in self.job.volumes for row in self.volume(volume, failed)]
        return [*rows, *self.errors(failed), *self.ceilings(failed)]

    def step(self, step: str, measured: MeasuredStep | Failed, ceilings: Ceilings | Failed) -> Iterator[Result]:
        """Time, memory and rates of a step; rates fail with the ceilings."""
        yield self._timing(f"{step}_step_time", measured, {})
        case = {"step": step}
        if failed := _failed(measured):
            yield from (self._failed(metric, failed, case) for metric in OF_A_STEP)
            return
        yield self._one("peak_memory", measured.peak_bytes, case)
        yield self._one("device_peak_memory", measured.device_peak_bytes, case)
        yield self._one("flops", measured.work.flops, case)
        if failed := _failed(ceilings):
            yield from (self._failed(metric, failed, case) for metric in OF_A_STEP[3:])
            return
        bytes_moved = measured.work.bytes_moved(self.job.switches)
        placed: Roofline = roofline(measured.work.flops, bytes_moved, measured.timing.median, ceilings)
        precision = self.job.switches.precision
        check_peak(placed.achieved, self.slug, precision, f"{self.job.variant}: {step} step at {self.cell.case}")
        yield self._one("achieved_flops", placed.achieved, case, placed.flag)
        yield self._one("ceiling_share", placed.ceiling_share, case, placed.flag)
        yield self._one("roofline_share", placed.roofline_share, case, placed.flag)

    def volume(self, volume: VolumeWork, measured: MeasuredVolume | Failed) -> Iterator[Result]:
        """Time of a batch of volumes, and energy of one."""
        case = volume.model_dump()
        yield self._timing("volume_time", measured, case)
        failed = _failed(measured)
        yield self._one("energy_per_volume", failed or _failed(measured.energy) or measured.energy_per_volume, case)

    def errors(self, found: Mapping[int, float] | Failed) -> list[Result]:
        """Relative errors of the output by step."""
        steps = [step for step in ERROR_STEPS if step < self.job.model.timesteps]
        failed = _failed(found)
        return [self._one("output_rel_error", failed or found[step], {"t": step}) for step in steps]

    def ceilings(self, ceilings: Ceilings | Failed) -> list[Result]:
        failed = _failed(ceilings)
        return [
            self._one("matmul_ceiling", failed or ceilings.matmul, {}),
            self._one("memory_ceiling", failed or ceilings.memory, {}),
        ]

    def _timing(self, metric: str, measured: MeasuredStep | MeasuredVolume | Failed, case: Case) -> Result:
        if failed := _failed(measured):
            return self._failed(metric, failed, case)
        timing = measured.timing
        values = {"values": timing.repeats, "first_call": timing.first_call, "warmup": timing.warmup}
        return self._result(metric, case, **values)

    def _one(self, metric: str, value: float | Failed, case: Case, reason: str = "") -> Result:
        if failed := _failed(value):
            return self._failed(metric, failed, case)
        return self._result(metric, case, values=(float(value),), reason=reason)

    def _failed(self, metric: str, failed: Failed, case: Case) -> Result:
        return self._result(metric, case, status=failed.status, reason=failed.reason)

    def _result(self, metric: str, case: Case, **outcome: Any) -> Result:
        case = {**self.cell.case, **case}
        return Result(metric=metric, unit=UNITS.get(metric, "1"), case=case, seed=self.job.seed, **outcome)


def _failed(value: Any) -> Failed | None:
    return value if isinstance(value, Failed) else None
