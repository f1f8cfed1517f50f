"""Settings of the `profile` stage."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator, model_validator

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.spec import Spec, setting
from genaccel.variant import Variant

Phase = Literal["denoise", "train"]
PHASES: tuple[Phase, ...] = ("denoise", "train")


class NcuSpec(Spec):
    """What Nsight Compute measures; it repeats every launch dozens of times, so that launches are chosen."""

    launches: int = setting(80, "launches that it measures of one step, at most; 0: none", example=10, ge=0)
    share: float = setting(
        0.9, "share of the step's kernel time after which no more kernels are added", example=0.5, gt=0, le=1
    )
    minutes: float = setting(10.0, "time limit of a step", example=5.0, gt=0)


class ProfileSpec(Spec):
    """Denoising and training steps under torch.profiler and Nsight Compute."""

    variants: tuple[str, ...] = setting(
        ("fp32_strict",), "variants to profile, each in a process of its own; []: none", example=("tf32",)
    )
    size: int | None = setting(
        None, "side of cubic volumes in voxels; null: the grid of the model's data set", example=8, ge=1
    )
    batch: int = setting(2, "volumes a step", example=1, ge=1)
    warmup: int = setting(1, "steps before the trace starts", example=5, ge=1)
    steps: int = setting(2, "steps in the trace that count", example=3, ge=1)
    ncu: NcuSpec = setting(NcuSpec(), "hardware counters by Nsight Compute, where it is found", example=None)
    seed: int = setting(0, "seed of weights and inputs", example=1, ge=0)

    @field_validator("variants")
    @classmethod
    def _different(cls, variants: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(variants)) < len(variants):
            raise ValueError(f"{list(variants)} names a variant twice; leave one out")
        return variants


class ProfileJob(Spec):
    """What the rule `profile_model` passes; `switches` are what the variant's name stands for."""

    device: str
    name: str
    model: MedDDPMSpec
    variant: str
    switches: Variant
    profile: ProfileSpec

    @model_validator(mode="after")
    def _fits(self) -> ProfileJob:
        halvings = len(self.model.channel_multipliers) - 1
        if self.profile.size is not None and self.profile.size % 2**halvings:
            raise ValueError(
                f"profile.size: {self.profile.size} voxels cannot be halved {halvings} times, as the {halvings + 1} "
                f"levels of models.{self.name} need; use a multiple of {2**halvings}"
            )
        return self

    @property
    def size(self) -> tuple[int, int, int]:
        """Sides of the volumes along the tensor's axes (D, H, W)."""
        return self.model.tensor_shape if self.profile.size is None else (self.profile.size,) * 3
