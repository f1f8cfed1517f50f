"""What the jobs that compute on a device ask of it: memory, steps and operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from genaccel.data.split import Split
from genaccel.device import CPU
from genaccel.med_ddpm.memory import peak_memory
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.plan.dag import Job
from genaccel.plan.work import Step, step_work
from genaccel.sample.spec import SampleJob
from genaccel.train.spec import TrainJob
from genaccel.variant import Kernels, Precision

SplitSizes = Mapping[Split, int]
"""Subjects of a data set by split."""


@dataclass(frozen=True)
class Demand:
    """A job that trains or samples, as a device sees it.

    Attributes:
        job: as ``Job`` writes itself.
        stage: block of the config that its settings stand in.
        step: what it repeats.
        batch: volumes a step.
        steps: how many of them each device takes; 0 where weights are used as they are.
        devices: how many work at once.
    """

    job: str
    rule: str
    model: str
    stage: str
    network: MedDDPMSpec
    step: Step
    precision: Precision
    kernels: Kernels
    batch: int
    gradient_checkpointing: bool
    steps: int
    devices: int

    @property
    def arithmetic(self) -> str:
        """What a table calls it: the precision, or that the kernels are fused, which implies theirs."""
        return "fused" if self.kernels == "fused" else self.precision

    @property
    def needs(self) -> tuple[str, ...]:
        """What a device must not lack."""
        return (self.precision, "fused") if self.kernels == "fused" else (self.precision,)

    @property
    def memory_bytes(self) -> int:
        """Predicted peak of one device's allocator."""
        memory = _memory(self.network, self.step, self.batch, self.precision, self.kernels, self.gradient_checkpointing)
        if self.step == "train" and not self.steps:
            return memory.weights + memory.ema
        # DDP's buckets hold as many bytes as the gradients.
        return memory.total + (memory.gradients if self.devices > 1 else 0)

    @property
    def flops(self) -> float:
        """Operations of one step, all its volumes."""
        return float(self.batch * step_work(self.network, self.step, self.gradient_checkpointing).flops)

    @property
    def operations(self) -> float:
        """Operations of one step that the host has to start; a CUDA graph is one."""
        if self.kernels == "fused":
            return 1
        return step_work(self.network, self.step, self.gradient_checkpointing).operations


def demand(job: Job, splits: SplitSizes, kind: str = "") -> Demand | None:
    """What a job asks of a device; None for a rule whose memory and time are not predicted.

    Args:
        splits: subjects of the job's data set.
        kind: ``cpu`` where the network gets a fixed number of volumes at a time.
    """
    if job.rule == "train_model":
        return _training(job, TrainJob.parse(job.spec))
    if job.rule == "sample_volumes":
        return _sampling(job, SampleJob.parse(job.spec), splits, kind)
    return None


def _training(job: Job, spec: TrainJob) -> Demand:
    train = spec.train
    return Demand(
        job=str(job),
        rule=job.rule,
        model=job.names["model"],
        stage="train",
        network=spec.model,
        step="train",
        precision=spec.switches.precision,
        kernels=spec.switches.kernels,
        batch=train.batch,
        gradient_checkpointing=train.gradient_checkpointing,
        steps=train.steps * train.accumulate,
        devices=train.processes,
    )


def _sampling(job: Job, spec: SampleJob, splits: SplitSizes, kind: str) -> Demand:
    volumes = splits.get(spec.sample.split, 0) * spec.sample.per_mask
    batch = CPU.fixed_batch if kind == "cpu" and CPU.fixed_batch else min(spec.sample.batch, max(volumes, 1))
    return Demand(
        job=str(job),
        rule=job.rule,
        model=job.names["model"],
        stage="sample",
        network=spec.model,
        step="denoise",
        precision=spec.switches.precision,
        kernels=spec.switches.kernels,
        batch=batch,
        gradient_checkpointing=False,
        steps=spec.steps * math.ceil(volumes / batch),
        devices=1,
    )


_memory = lru_cache(maxsize=256)(peak_memory)
