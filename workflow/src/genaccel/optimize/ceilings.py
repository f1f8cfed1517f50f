"""What the device reaches at most, measured in the same process: a large matrix product and a large copy."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from genaccel.device import Device
from genaccel.med_ddpm.network import DTYPES
from genaccel.variant import Variant

SIDES = {"cpu": 1024}
SIDE = 8192
COPIES = {"cpu": 2**26}
COPY_BYTES = 2**30
"""On a CPU smaller: caches hold less than 64 MiB, and a product of 8,192 takes half a minute."""
CALLS = 5


@dataclass(frozen=True)
class Ceilings:
    """Best of a few calls.

    Attributes:
        matmul: FLOP/s of a product of two square random matrices in the dtype of the variant's convolutions.
        memory: bytes/s, read and written, of a copy on the device.
    """

    matmul: float
    memory: float


def measure_ceilings(device: Device, variant: Variant) -> Ceilings:
    """Measures both, after everything that is timed: the FP32 precision of products is set to the convolutions'."""
    device.apply(variant.model_copy(update={"matmul": variant.convolution}))
    side = SIDES.get(device.kind, SIDE)
    dtype = DTYPES.get(variant.autocast, torch.float32)
    # Random, since a product of constants draws less power and so runs faster.
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(side, side, generator=generator).to(device.torch, dtype) for _ in range(2))
    c = torch.empty_like(a)
    matmul = min(device.timed(lambda: torch.mm(a, b, out=c))[0] for _ in range(CALLS))
    source = torch.ones(COPIES.get(device.kind, COPY_BYTES), dtype=torch.uint8, device=device.torch)
    target = torch.empty_like(source)
    copy = min(device.timed(lambda: target.copy_(source))[0] for _ in range(CALLS))
    return Ceilings(matmul=2 * side**3 / matmul, memory=2 * source.numel() / copy)
