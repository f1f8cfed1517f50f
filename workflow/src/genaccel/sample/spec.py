"""Settings of the `sample` stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, field_validator

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.sample.samplers import SAMPLERS
from genaccel.spec import Spec, setting

Steps = Annotated[int, Field(ge=1)]


class SampleSpec(Spec):
    """Synthetic volumes for the masks of one split."""

    samplers: tuple[str, ...] = setting(
        ("dpm_solver_pp",), "samplers to run, each on its own", example=("ddpm",), min_length=1
    )
    steps: tuple[Steps, ...] | None = setting(
        (20,),
        "network evaluations a volume, every sampler at each; null: every step of the schedule, as ddpm always does",
        example=(2, 3),
        min_length=1,
    )
    eta: float = setting(
        1.0, "fresh noise of ddim and dpm_solver_pp: 0 none (deterministic), 1 ancestral", example=0.5, ge=0, le=1
    )
    order: int = setting(3, "order of the multistep samplers deis and ipndm", example=2, ge=1, le=4)
    split: Literal["train", "validation", "test"] = setting("test", "whose masks to sample", example="train")
    per_mask: int = setting(1, "volumes a mask", example=2, ge=1)
    batch: int = setting(4, "volumes at a time; does not change them on a CPU", example=2, ge=1)
    precision: Literal["fp32", "tf32", "bf16"] = setting("fp32", "arithmetic", example="tf32")
    seed: int = setting(0, "seed of the noise, combined with subject and sample number", example=1, ge=0)

    @field_validator("samplers")
    @classmethod
    def _known(cls, samplers: tuple[str, ...]) -> tuple[str, ...]:
        for sampler in samplers:
            SAMPLERS.check(sampler)
        if len(set(samplers)) < len(samplers):
            raise ValueError(f"{list(samplers)} names a sampler twice; leave one out")
        return samplers

    @field_validator("steps")
    @classmethod
    def _different(cls, steps: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if steps and len(set(steps)) < len(steps):
            raise ValueError(f"{list(steps)} names a number twice; leave one out")
        return steps

    def runs(self, timesteps: int) -> Iterator[tuple[str, int]]:
        """Every sampler with every number of steps, of a schedule of ``timesteps``."""
        for sampler in self.samplers:
            every = self.steps is None or "steps" not in SAMPLERS.options(sampler)
            yield from ((sampler, steps) for steps in ((timesteps,) if every else self.steps))


class SampleJob(Spec):
    """What the rule `sample_volumes` passes; sampler and steps are one pair of ``SampleSpec.runs``."""

    device: str
    model: MedDDPMSpec
    sampler: str
    steps: int
    sample: SampleSpec
