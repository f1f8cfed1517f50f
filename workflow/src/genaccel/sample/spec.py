"""Settings of the `sample` stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.sample.samplers import SAMPLERS
from genaccel.spec import Spec, setting
from genaccel.variant import Variant

Steps = Annotated[int, Field(ge=1)]


class SampleRun(NamedTuple):
    """One way in which a model is sampled: what a folder of volumes is named by."""

    sampler: str
    steps: int
    variant: str


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
    variants: tuple[str, ...] = setting(
        ("fp32_strict",),
        "variants to sample with, each on its own, by name: arithmetic, layout and kernels",
        example=("fp32_strict", "tf32"),
        min_length=1,
    )
    variants_of: dict[str, tuple[str, ...]] = setting(
        {},
        "samplers that run with other variants than those of `variants`, e.g. {ddpm: [fast]}; none leaves one out",
        example={"dpm_solver_pp": ("fp32_strict", "tf32")},
    )
    seed: int = setting(0, "seed of the noise, combined with subject and sample number", example=1, ge=0)

    @field_validator("samplers")
    @classmethod
    def _known(cls, samplers: tuple[str, ...]) -> tuple[str, ...]:
        for sampler in samplers:
            SAMPLERS.check(sampler)
        if len(set(samplers)) < len(samplers):
            raise ValueError(f"{list(samplers)} names a sampler twice; leave one out")
        return samplers

    @field_validator("variants", "variants_of")
    @classmethod
    def _once(cls, given: Any) -> Any:
        for names in given.values() if isinstance(given, dict) else [given]:
            if len(set(names)) < len(names):
                raise ValueError(f"{list(names)} names a variant twice; leave one out")
        return given

    @model_validator(mode="after")
    def _of_samplers(self) -> SampleSpec:
        for sampler in self.variants_of:
            SAMPLERS.check(sampler)
        if not any(self.variants_of.get(sampler, self.variants) for sampler in self.samplers):
            raise ValueError("variants_of leaves no run over; name a variant for one of the samplers")
        return self

    @field_validator("steps")
    @classmethod
    def _different(cls, steps: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if steps and len(set(steps)) < len(steps):
            raise ValueError(f"{list(steps)} names a number twice; leave one out")
        return steps

    def runs(self, timesteps: int) -> Iterator[SampleRun]:
        """Every sampler with every number of steps in every of its variants, of a schedule of ``timesteps``."""
        for sampler in self.samplers:
            every = self.steps is None or "steps" not in SAMPLERS.options(sampler)
            for steps in (timesteps,) if every else self.steps:
                for variant in self.variants_of.get(sampler, self.variants):
                    yield SampleRun(sampler, steps, variant)


class SampleJob(Spec):
    """What the rule `sample_volumes` passes; sampler, steps and variant are one of ``SampleSpec.runs``."""

    device: str
    model: MedDDPMSpec
    sampler: str
    steps: int
    variant: str
    switches: Variant
    sample: SampleSpec
