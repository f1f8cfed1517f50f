"""What one step computes: floating-point operations, and operations that the host has to start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import torch

from genaccel.flops import Counter
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet

Step = Literal["train", "denoise"]

BACKWARD = (2, 1.1)
"""FLOPs and operations of a backward pass over the forward one's: each product has two gradients. As counted for this
network, whatever its depth."""

RECOMPUTED = (0.54, 0.73)
"""The same of what gradient checkpointing computes again: blocks alone, and none to its last product."""


@dataclass(frozen=True)
class Work:
    """Of one step of one volume.

    Attributes:
        flops: floating-point operations of convolutions and matrix products, a multiply-add being two.
        operations: calls of PyTorch's operators that compute, views left out; independent of the batch.
    """

    flops: float
    operations: float


def step_work(spec: MedDDPMSpec, step: Step, gradient_checkpointing: bool = False) -> Work:
    """Work of a step, from a forward pass counted on the meta device, where tensors have sizes but no data.

    Args:
        step: ``train`` is forward and backward pass, without the optimizer; ``denoise`` the forward pass.
        gradient_checkpointing: of the training.
    """
    forward = _forward(spec)
    if step == "denoise":
        return forward
    flops, operations = (
        1 + backward + recomputed * gradient_checkpointing
        for backward, recomputed in zip(BACKWARD, RECOMPUTED, strict=True)
    )
    return Work(forward.flops * flops, round(forward.operations * operations))


@lru_cache(maxsize=64)
def _forward(spec: MedDDPMSpec) -> Work:
    with torch.device("meta"):
        model = UNet(spec)
        inputs = torch.empty(1, spec.in_channels, *spec.tensor_shape)
        t = torch.empty(1, dtype=torch.long)
    with torch.no_grad(), Counter() as counted:
        model(inputs, t)
    return Work(counted.flops, counted.operations)
