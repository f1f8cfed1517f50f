"""A variant is data: one choice of arithmetic, layout and kernels, with every switch set explicitly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from genaccel.spec import Spec, SpecError

if TYPE_CHECKING:
    from genaccel.device import Device

Inner = Literal["ieee", "tf32"]
Half = Literal["off", "bf16", "fp16"]
Precision = Literal["fp32", "tf32", "bf16", "fp16"]
Kernels = Literal["stock", "fused"]

MODULES: dict[Kernels, str] = {"stock": "genaccel.med_ddpm.unet", "fused": "genaccel.med_ddpm.fast"}
"""Where kernels lie: imported by name and hashed by the rules, so that their edits rerun their own variants alone."""


class Variant(Spec):
    """All switches that decide how fast a network runs and with what arithmetic; none is left to a default."""

    matmul: Inner = Field(description="products of FP32 matrices: IEEE or TF32 tensor cores")
    convolution: Inner = Field(description="convolutions of FP32 tensors: IEEE or TF32 tensor cores")
    autocast: Half = Field(description="dtype that autocast computes in, where it is on")
    grad_scaler: bool = Field(description="scale the loss, so that FP16 gradients do not vanish")
    weights: Literal["fp32", "bf16", "fp16"] = Field(
        description="dtype of the weights in sampling; training keeps FP32"
    )
    memory_format: Literal["contiguous", "channels_last"] = Field(description="layout of volumes and 3D kernels")
    cudnn_benchmark: bool = Field(description="let cuDNN time its algorithms instead of guessing")
    compile: Literal["off", "default", "reduce-overhead", "max-autotune"] = Field(description="mode of torch.compile")
    cuda_graphs: bool = Field(description="record a step once and replay it, without launches from the host")
    kernels: Kernels = Field(description="PyTorch's modules, or this project's fused ones")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.grad_scaler and self.autocast != "fp16":
            raise ValueError(
                f"grad_scaler with autocast {self.autocast}: only FP16 has so narrow a range that gradients vanish; "
                "BF16 has FP32's, and scaling it only adds skipped steps. Set grad_scaler: false"
            )
        if self.autocast == "fp16" and not self.grad_scaler:
            raise ValueError("autocast fp16 without grad_scaler loses small gradients; set grad_scaler: true")
        if self.weights != "fp32" and self.autocast != self.weights:
            raise ValueError(
                f"weights {self.weights} with autocast {self.autocast}: half-precision weights need activations of "
                f"the same dtype; set autocast: {self.weights}"
            )
        if self.compile != "off" and self.kernels == "fused":
            raise ValueError("compile with kernels fused: those are compiled already; set compile: off")
        if self.kernels == "fused" and (self.autocast, self.memory_format) != ("bf16", "channels_last"):
            raise ValueError("kernels fused work on BF16 volumes in channels-last; set autocast and memory_format so")
        if self.compile in ("reduce-overhead", "max-autotune") and self.cuda_graphs:
            raise ValueError(f"compile {self.compile} records CUDA graphs of its own; set cuda_graphs: false")
        if self.cuda_graphs and self.grad_scaler:
            raise ValueError(
                "cuda_graphs with grad_scaler: the scaler's step asks the host whether to skip it, which a recording "
                "cannot; set cuda_graphs: false"
            )
        return self

    @property
    def precision(self) -> Precision:
        """The dtype of the convolutions' arithmetic, where the time goes."""
        if self.autocast != "off":
            return self.autocast
        return "tf32" if self.convolution == "tf32" else "fp32"

    @property
    def module(self) -> str:
        """Where the kernels lie."""
        return MODULES[self.kernels]

    @property
    def needs(self) -> tuple[str, ...]:
        """Capabilities that a device must have, as ``Device.lacks`` names them."""
        needed = {
            "tf32": "tf32" in (self.matmul, self.convolution),
            "bf16": self.autocast == "bf16",
            "fp16": self.autocast == "fp16",
            "cudnn_benchmark": self.cudnn_benchmark,
            "compile": self.compile != "off",
            "cuda_graphs": self.cuda_graphs,
            "fused_kernels": self.kernels == "fused",
        }
        return tuple(name for name, need in needed.items() if need)


STRICT = Variant(
    matmul="ieee",
    convolution="ieee",
    autocast="off",
    grad_scaler=False,
    weights="fp32",
    memory_format="contiguous",
    cudnn_benchmark=False,
    compile="off",
    cuda_graphs=False,
    kernels="stock",
)
"""IEEE arithmetic throughout, as published: what scores are computed in, and what other variants are compared with."""


def apply(variant: Variant, device: Device, key: str, name: str) -> dict[str, Any]:
    """Sets a variant's switches and returns the state read back.

    Args:
        key: of the config that names the variant.
        name: of the variant.

    Raises:
        SpecError: the device lacks what it needs; with key and name.
    """
    try:
        return device.apply(variant)
    except SpecError as error:
        raise SpecError(f"{key}: {name}: {error}") from None


def differences(one: Variant, other: Variant) -> Iterator[tuple[str, Any, Any]]:
    """Switches that differ, as ``(switch, in one, in other)``."""
    for name in Variant.model_fields:
        a, b = getattr(one, name), getattr(other, name)
        if a != b:
            yield name, a, b
