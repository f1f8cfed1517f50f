"""Settings of the `sample` stage."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.sample.samplers import SAMPLERS
from genaccel.spec import Spec, setting


class SampleSpec(Spec):
    """Synthetic volumes for the masks of one split."""

    samplers: tuple[str, ...] = setting(("ddim",), "samplers to run, each on its own", example=("ddpm",), min_length=1)
    steps: int | None = setting(
        20,
        "network evaluations a volume; null: every step of the schedule. ddpm always uses every step",
        example=2,
        ge=1,
    )
    eta: float = setting(0.0, "noise of ddim: 0 deterministic, 1 ancestral", example=0.5, ge=0, le=1)
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


class SampleJob(Spec):
    """What the rule `sample` passes; `sampler` is one of `sample.samplers`."""

    device: str
    model: MedDDPMSpec
    sampler: str
    sample: SampleSpec
