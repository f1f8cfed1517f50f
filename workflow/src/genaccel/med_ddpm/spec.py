"""What defines a Med-DDPM network: its entry in the config and the resolved form a job gets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from genaccel.spec import Spec, setting

GROUPS = 32
"""Groups of every GroupNorm, as published."""

Axis = Literal["R", "L", "A", "P", "S", "I"]
Positive = Annotated[int, Field(ge=1)]


class NetworkSpec(Spec):
    """The UNet and its diffusion (Dorjsembe et al., Med-DDPM, IEEE JBHI 2024)."""

    base_channels: int = setting(32, "channels of the first level; 64 in the published models", example=64, ge=1)
    channel_multipliers: tuple[Positive, ...] = setting(
        (1, 1, 2),
        "channels of each level over base_channels; (1, 1, 2, 3, 4) in the published models",
        example=(1, 2, 3),
        min_length=1,
    )
    num_res_blocks: int = setting(1, "residual blocks a level; published: 1 whole head, 2 BraTS", example=2, ge=1)
    attention_downsampling: int | None = setting(
        0,
        "level with self-attention, by its downsampling; 0: the middle block alone; null: side // 16, as published",
        example=2,
        ge=0,
    )
    dropout: float = setting(0.0, "dropout in the residual blocks", example=0.1, ge=0.0, lt=1.0)
    timesteps: int = setting(250, "steps T of the diffusion, on the cosine schedule", example=100, ge=2)
    axes: tuple[Axis, Axis, Axis] = setting(
        ("S", "A", "R"),
        "where the tensor's axes D, H, W point; published: [S, A, R] whole head, [S, P, L] BraTS",
        example=("S", "P", "L"),
    )
    condition: tuple[str, ...] | None = setting(
        None,
        "mask channels in the network's order; null: by name. Published weights: "
        "[brain, tumour] whole head, [tumour_1, tumour_2, tumour_3, brain] BraTS",
        example=("tumour", "brain"),
    )

    @model_validator(mode="after")
    def _check(self) -> NetworkSpec:
        for multiplier in self.channel_multipliers:
            if (self.base_channels * multiplier) % GROUPS:
                raise ValueError(
                    f"base_channels x multiplier = {self.base_channels} x {multiplier} = "
                    f"{self.base_channels * multiplier} channels, which GroupNorm's {GROUPS} groups do not divide; "
                    f"make base_channels a multiple of {GROUPS}"
                )
        levels = {2**level for level in range(len(self.channel_multipliers))}
        if self.attention_downsampling and self.attention_downsampling not in levels:
            raise ValueError(
                f"attention_downsampling: no level has downsampling {self.attention_downsampling}; "
                f"valid: {sorted(levels)}, 0 (middle block alone) or null (side // 16)"
            )
        if {_LINE[a] for a in self.axes} != {0, 1, 2}:
            raise ValueError(
                f"axes: {list(self.axes)} name one direction twice; use one of R/L, one of A/P, one of S/I"
            )
        return self


_LINE = {"R": 0, "L": 0, "A": 1, "P": 1, "S": 2, "I": 2}


class MedDDPMSpec(NetworkSpec):
    """A network with its data's grid and channels: all that building it takes."""

    shape: tuple[int, int, int] = Field(description="voxels of the grid along R, A, S")
    image: tuple[str, ...] = Field(description="modalities, one image channel each", min_length=1)
    condition: tuple[str, ...] = Field(description="mask channels, in the network's order")

    @model_validator(mode="after")
    def _check_shape(self) -> MedDDPMSpec:
        halvings = len(self.channel_multipliers) - 1
        for axis, side in zip("RAS", self.shape, strict=True):
            if side % 2**halvings or side < 2**halvings:
                raise ValueError(
                    f"shape: the side of {side} voxels along {axis} cannot be halved {halvings} times, as "
                    f"{halvings + 1} levels need; use a multiple of {2**halvings}"
                )
        return self

    @property
    def in_channels(self) -> int:
        return len(self.image) + len(self.condition)

    @property
    def out_channels(self) -> int:
        return len(self.image)

    @property
    def attention_level(self) -> int:
        """Downsampling of the levels with attention; 0 where no level has it."""
        if self.attention_downsampling is None:
            return self.shape[0] // 16
        return self.attention_downsampling

    @property
    def tensor_shape(self) -> tuple[int, int, int]:
        """The grid along the tensor's axes (D, H, W)."""
        return tuple(self.shape[_LINE[axis]] for axis in self.axes)
