"""Settings of the `optimize` stage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.sample.samplers import SAMPLERS
from genaccel.spec import Spec, SpecError, nearest, setting
from genaccel.variant import Variant

Positive = Annotated[int, Field(ge=1)]
Shape = tuple[Positive, Positive, Positive]


class VolumeSpec(Spec):
    """A whole volume to time: one variant with one sampler."""

    variant: str
    sampler: str
    steps: int | None = Field(default=None, ge=1)

    @field_validator("sampler")
    @classmethod
    def _known(cls, sampler: str) -> str:
        return SAMPLERS.check(sampler)


class TimingSpec(Spec):
    """How often a call is repeated, which changes how sure a time is and not what is timed."""

    repeats: int = setting(5, "timed calls of a step or volume", example=10, ge=1)
    warmup: int = setting(1, "calls of a step between the first and the timed ones", example=2, ge=0)
    budget_s: float = setting(
        10.0,
        "seconds after the first call when a measurement stops early; three calls of a step and one of a volume are "
        "always timed",
        example=20.0,
        gt=0,
    )


class WorkSpec(Spec):
    """What is measured."""

    variants: tuple[str, ...] = setting(
        ("fast",),
        "variants to measure, by name; the baselines fp32_strict, fp32_strict_benchmark and pytorch_default are added; "
        "[] switches the stage off",
        example=("bf16",),
    )
    sizes: tuple[Positive | Shape, ...] | None = setting(
        None, "sides of the volumes, or voxels along R, A, S; null: the model's own grid", example=(8,), min_length=1
    )
    batches: tuple[Positive, ...] = setting((1,), "volumes at a time", example=(2,), min_length=1)
    volumes: tuple[VolumeSpec, ...] = setting(
        (),
        "whole volumes to time as well, e.g. {variant: fast, sampler: dpm_solver_pp, steps: 20}; steps null: all of "
        "the schedule",
        example=({"variant": "fp32_strict", "sampler": "ddim", "steps": 2},),
    )
    seed: int = setting(0, "seed of weights, inputs and noise", example=1, ge=0)

    @field_validator("variants", "sizes", "batches")
    @classmethod
    def _once(cls, given: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if given and len(set(given)) < len(given):
            raise ValueError(f"{list(given)} names one twice; leave one out")
        return given

    @model_validator(mode="after")
    def _check_volumes(self) -> WorkSpec:
        if len(set(self.volumes)) < len(self.volumes):
            raise ValueError("volumes names one twice; leave one out")
        return self

    def shapes(self, grid: Shape) -> tuple[Shape, ...]:
        """Voxels along R, A, S of every size, for a model of this grid."""
        sizes = [grid] if self.sizes is None else self.sizes
        return tuple((size, size, size) if isinstance(size, int) else tuple(size) for size in sizes)

    def check(self, model: MedDDPMSpec, name: str, selected: Collection[str]) -> None:
        """That the stage can run for a model.

        Args:
            name: of the model.
            selected: names of all variants that are measured, baselines too.

        Raises:
            SpecError: a size that the network cannot halve, or a volume that is not there to be timed.
        """
        for shape in self.shapes(model.shape):
            MedDDPMSpec.build(model.model_dump(mode="json") | {"shape": shape}, where=f"optimize.sizes, models.{name}")
        for number, volume in enumerate(self.volumes):
            where = f"optimize.volumes.{number}"
            if volume.variant not in selected:
                raise SpecError(
                    f"{where}.variant: {volume.variant!r} is not among the measured variants; add it to "
                    f"optimize.variants, or name another; {nearest(volume.variant, selected)}"
                )
            if (steps := _steps(volume, model.timesteps)) > model.timesteps:
                raise SpecError(
                    f"{where}.steps: {steps} exceeds the {model.timesteps} steps of models.{name}.timesteps; use at "
                    f"most {model.timesteps}"
                )

    def volumes_of(self, variant: str, timesteps: int) -> tuple[VolumeWork, ...]:
        """The volumes to time with a variant, of a schedule of ``timesteps``."""
        return tuple(
            VolumeWork(sampler=volume.sampler, steps=_steps(volume, timesteps))
            for volume in self.volumes
            if volume.variant == variant
        )


def _steps(volume: VolumeSpec, timesteps: int) -> int:
    every = volume.steps is None or "steps" not in SAMPLERS.options(volume.sampler)
    return timesteps if every else volume.steps


class OptimizeSpec(TimingSpec, WorkSpec):
    """Speed, memory, energy and output error of variants, each in a process of its own."""


class VolumeWork(Spec):
    """A sampler and its number of network evaluations."""

    sampler: str
    steps: int


class OptimizeJob(Spec):
    """What the rule `optimize_measure` passes.

    ``plainer`` are variants that ship and that this one would equal where a device has no TF32 or no cuDNN.
    """

    device: str
    name: str
    model: MedDDPMSpec
    variant: str
    switches: Variant
    plainer: dict[str, Variant]
    shapes: tuple[Shape, ...]
    batches: tuple[int, ...]
    volumes: tuple[VolumeWork, ...]
    seed: int
    timing: TimingSpec

    def cells(self) -> Iterator[Cell]:
        """What is measured, each in a process of its own."""
        for shape in self.shapes:
            for batch in self.batches:
                yield Cell(shape=shape, batch=batch)

    def workload(self) -> dict[str, Any]:
        """What defines the work, the same for all variants and devices; size, batch and sampler are in each case.

        Of the model only what decides the network: not how its channels are called or where its axes point.
        """
        network = self.model.model_dump(mode="json", exclude={"shape", "axes", "image", "condition"})
        network["attention_downsampling"] = self.model.attention_level
        channels = {"in_channels": self.model.in_channels, "out_channels": self.model.out_channels}
        return {"network": network | channels, "seed": self.seed}


class Cell(Spec):
    """One size and batch of one variant."""

    shape: Shape
    batch: int

    def size(self, model: MedDDPMSpec) -> Shape:
        """Sides along the tensor's axes (D, H, W)."""
        return model.model_copy(update={"shape": self.shape}).tensor_shape

    @property
    def case(self) -> Mapping[str, str | int]:
        """``size`` is one side of a cube, or all three along R, A, S."""
        sides = set(self.shape)
        return {"size": self.shape[0] if len(sides) == 1 else "x".join(map(str, self.shape)), "batch": self.batch}
