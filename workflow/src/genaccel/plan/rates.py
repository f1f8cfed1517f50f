"""How long a step takes: as measured where it was, else derived, and then it says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from genaccel.measurement import Run, read_run
from genaccel.optimize.spec import OptimizeJob
from genaccel.plan.devices import KnownDevice, known_devices
from genaccel.plan.work import Step, step_work
from genaccel.resources import read_resource
from genaccel.spec import SpecError
from genaccel.train.spec import TrainJob
from genaccel.variant import Kernels
from genaccel.variants import VARIANTS

REFERENCES = Path("results/reference")

BASE = "H200-141"
"""The device that others are scaled from: the one with the most measurements."""

SAME = 0.01
"""Two steps whose operations differ by less are the same step."""

SPREAD = (0.75, 1.5)
"""Factors on a time derived from another size. Between 32^3 and 128^3 one device's rate went from 0.69 to 1 (training,
TF32), and smaller volumes have been faster as well."""

LAUNCH_S = (5e-6, 25e-6)
"""Host time to start one operation, below which no step of an unfused network goes: a step of 32^3 took 24 microseconds
an operation longer than its arithmetic at the rate of 128^3 (results/reference/nvidia-h200, training)."""


@dataclass(frozen=True)
class Estimate:
    """Seconds between ``low`` and ``high``, and where they come from."""

    low: float
    high: float
    basis: str

    def times(self, factor: float) -> Estimate:
        return Estimate(self.low * factor, self.high * factor, self.basis)


MEASURED = "measured"
OTHER_SIZES = "from times measured on it at other sizes"
SCALED = f"scaled from {BASE}, not measured"


@dataclass(frozen=True)
class MeasuredStep:
    """A step whose time is known: ``flops`` of all its volumes, and ``seconds``."""

    step: Step
    precision: str
    kernels: Kernels
    flops: float
    seconds: float

    @property
    def rate(self) -> float:
        return self.flops / self.seconds


def step_seconds(
    device: KnownDevice, step: Step, precision: str, flops: float, operations: float, kernels: Kernels = "stock"
) -> Estimate | None:
    """Time of one step; None where nothing is known to derive it from.

    Args:
        flops: operations of all volumes of the step.
        operations: how many the host has to start.
    """
    if precision in device.lacks or kernels in device.lacks:
        return None
    # Tensor cores that have both take as long for either.
    precision = "bf16" if precision == "fp16" else precision
    if own := _from_measured(device, step, precision, kernels, flops, operations):
        return own
    base = known_devices()[BASE]
    ratios = _ratios(base, device, precision)
    there = _from_measured(base, step, precision, kernels, flops, operations)
    if not ratios or there is None:
        return None
    return Estimate(there.low * min(ratios), there.high * max(ratios), SCALED)


def _ratios(base: KnownDevice, device: KnownDevice, precision: str) -> list[float]:
    """How much longer the device takes by peak arithmetic and by memory: half of a step is bound by each."""
    if precision not in base.tflops or precision not in device.tflops:
        return []
    ratios = [base.tflops[precision] / device.tflops[precision]]
    if base.bandwidth_gbs and device.bandwidth_gbs:
        ratios.append(base.bandwidth_gbs / device.bandwidth_gbs)
    return ratios


def _from_measured(
    device: KnownDevice, step: Step, precision: str, kernels: Kernels, flops: float, operations: float
) -> Estimate | None:
    wanted = (step, precision, kernels)
    points = [p for p in measured_steps(device) if (p.step, p.precision, p.kernels) == wanted]
    if not points:
        return None
    if same := [p.seconds for p in points if abs(p.flops / flops - 1) < SAME]:
        return Estimate(min(same), max(same), MEASURED)
    # The next sizes below and above, or the nearest one.
    smaller, larger = ([p for p in points if (p.flops < flops) is below] for below in (True, False))
    ends = [max(smaller, key=lambda p: p.flops)] if smaller else []
    ends += [min(larger, key=lambda p: p.flops)] if larger else []
    times = [flops / p.rate for p in ends]
    low, high = (factor * bound for factor, bound in zip(SPREAD, (min(times), max(times)), strict=True))
    return Estimate(max(low, LAUNCH_S[0] * operations), max(high, LAUNCH_S[1] * operations), OTHER_SIZES)


def measured_steps(device: KnownDevice, references: Path = REFERENCES) -> tuple[MeasuredStep, ...]:
    """Every measured step of a device: of ``measured_steps.csv``, and of the committed runs."""
    return _measured_steps(device.name, device.slug, references.resolve())


@cache
def _measured_steps(name: str, slug: str, references: Path) -> tuple[MeasuredStep, ...]:
    table = [
        MeasuredStep(
            "train" if row["step"] == "train" else "denoise",
            row["precision"],
            "stock",
            float(row["tflop"]) * 1e12,
            float(row["step_ms"]) / 1e3,
        )
        for row in read_resource("measured_steps.csv")
        if row["device"] == name
    ]
    trained = (_training_step(run) for run in reference_runs(slug, "train", references))
    fused = (step for run in reference_runs(slug, "optimize", references) for step in _fused_steps(run))
    return (*table, *filter(None, trained), *fused)


def reference_runs(slug: str, stage: str, references: Path = REFERENCES) -> Iterator[Run]:
    """The committed runs of a stage in folders whose names match; those of another version are passed over."""
    for path in sorted(references.glob(f"*/runs/{stage}-*.json")):
        if re.search(slug, path.parent.parent.name):
            try:
                yield read_run(path)
            except SpecError:
                continue


def training_job(run: Run) -> TrainJob | None:
    """A run's settings, where this version still has them all."""
    try:
        return TrainJob.build(_with_switches(run.spec))
    except SpecError:
        return None


def _with_switches(spec: dict[str, Any]) -> dict[str, Any]:
    """Settings of a run from before there were variants, which gave a precision alone."""
    train = dict(spec.get("train") or {})
    name = {"fp32": "fp32_strict", "tf32": "tf32", "bf16": "bf16"}.get(train.pop("precision", None))
    if name is None:
        return spec
    return spec | {"train": train | {"variant": name}, "switches": VARIANTS[name].model_dump()}


def _training_step(run: Run) -> MeasuredStep | None:
    """Seconds of a micro-step of a run; None where its time is not that of all its steps on one device."""
    job = training_job(run)
    if job is None or run.n_devices > 1:
        return None
    if run.provenance.get("parallelism", {}).get("checkpoint"):
        return None
    total = sum(sum(result.values) for result in run.results if result.metric == "training_time")
    micro_steps = job.train.steps * job.train.accumulate
    if not total or not micro_steps:
        return None
    work = step_work(job.model, "train", job.train.gradient_checkpointing)
    switches = job.switches
    return MeasuredStep(
        "train", switches.precision, switches.kernels, work.flops * job.train.batch, total / micro_steps
    )


def _fused_steps(run: Run) -> Iterator[MeasuredStep]:
    """Steps of a fused variant. Those of stock kernels stand in the table: variants differ in more than precision."""
    try:
        job = OptimizeJob.build(run.spec)
    except SpecError:
        return
    if job.switches.kernels != "fused":
        return
    steps: dict[str, Step] = {"train_step_time": "train", "denoise_step_time": "denoise"}
    for cell in job.cells():
        spec = job.model.model_copy(update={"shape": cell.shape})
        for result in run.results:
            if result.metric in steps and result.values and dict(result.case) == dict(cell.case):
                step = steps[result.metric]
                flops = cell.batch * step_work(spec, step).flops
                yield MeasuredStep(step, job.switches.precision, "fused", flops, median(result.values))
