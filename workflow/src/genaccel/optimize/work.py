"""What a step of a network computes and moves at a size and batch, counted on the meta device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from genaccel.flops import Counter
from genaccel.med_ddpm.network import DTYPES
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.variant import Variant

Step = Literal["train", "denoise"]

LIMIT = 2**31
"""Elements of one tensor from which convolutions are known to return wrong values without a word."""


@dataclass(frozen=True)
class Work:
    """Of one step of a batch.

    Attributes:
        flops: of convolutions and matrix products, forward and (``train``) backward; a multiply-add is two.
        elements: that these take and give, activations, gradients and parameters, each once a product.
    """

    flops: int
    elements: int

    def bytes_moved(self, variant: Variant) -> int:
        """What must cross the memory's bus where everything else is fused into the convolutions, in bytes.

        Every element counts with the size of the dtype that the convolutions compute in: two bytes in half
        precision, four in FP32 and TF32. Layout copies, normalisation and optimizer come on top in any real step.
        """
        half = DTYPES.get(variant.autocast)
        return self.elements * (half.itemsize if half else 4)


@dataclass(frozen=True)
class Widest:
    """The largest tensor that a convolution takes or gives."""

    layer: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def step_work(model: MedDDPMSpec, size: tuple[int, int, int], batch: int, step: Step) -> Work:
    """Counts one step; the backward pass gives every gradient but the volumes' own."""
    network, inputs, t = _meta(model, size, batch)
    with Counter() as counted:
        if step == "train":
            network(inputs, t).sum().backward()
        else:
            with torch.no_grad():
                network(inputs, t)
    return Work(counted.flops, counted.elements)


def widest(model: MedDDPMSpec, size: tuple[int, int, int], batch: int) -> Widest:
    """The largest input or output of a convolution."""
    found: list[Widest] = []
    network, inputs, t = _meta(model, size, batch)

    def note(name: str) -> object:
        def hook(layer: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
            found.extend((Widest(name, tuple(given[0].shape)), Widest(name, tuple(output.shape))))

        return hook

    for name, layer in network.named_modules():
        if isinstance(layer, nn.Conv3d):
            layer.register_forward_hook(note(name))
    with torch.no_grad():
        network(inputs, t)
    return max(found, key=lambda tensor: tensor.elements)


def too_wide(model: MedDDPMSpec, size: tuple[int, int, int], batch: int) -> str | None:
    """Why this size and batch are refused; None where they are not."""
    tensor = widest(model, size, batch)
    if tensor.elements < LIMIT:
        return None
    return (
        f"the convolution {tensor.layer} has a tensor of shape {list(tensor.shape)}, {tensor.elements} elements: from "
        f"2^31 = {LIMIT} on convolutions may return wrong values without a word; use a smaller size or batch"
    )


def _meta(model: MedDDPMSpec, size: tuple[int, int, int], batch: int) -> tuple[UNet, Tensor, Tensor]:
    with torch.device("meta"):
        network = UNet(model)
        inputs = torch.empty(batch, model.in_channels, *size)
        t = torch.empty(batch, dtype=torch.long)
    return network, inputs, t
