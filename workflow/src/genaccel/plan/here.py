"""This machine's CPU: the rate of one forward pass, timed here, since no table knows it."""

from __future__ import annotations

import time
from functools import lru_cache

import torch

from genaccel.device import CPU, Precision
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.plan.rates import Estimate
from genaccel.plan.work import step_work

SIDE = 16
"""Voxels a side of the timed volume, at least; published networks take a second there."""

SPREAD = (0.5, 2.0)
"""Factors on a time at this rate: other sizes and backward passes run at others, and so does a busy machine."""

TIMED = "from one forward pass timed on this machine's CPU"


def cpu_seconds(network: MedDDPMSpec, precision: Precision, flops: float) -> Estimate:
    """Time of a step of ``flops`` operations."""
    seconds = flops / _rate(network, precision)
    return Estimate(SPREAD[0] * seconds, SPREAD[1] * seconds, TIMED)


@lru_cache(maxsize=16)
def _rate(network: MedDDPMSpec, precision: Precision) -> float:
    """FLOP/s of a forward pass of a small volume."""
    device = CPU()
    factor = 2 ** (len(network.channel_multipliers) - 1)
    sides = tuple(min(side, -(-SIDE // factor) * factor) for side in network.shape)
    small = network.model_copy(update={"shape": sides})
    batch = CPU.fixed_batch or 1
    model = UNet(small).eval()
    inputs = torch.randn(batch, small.in_channels, *small.tensor_shape), torch.zeros(batch, dtype=torch.long)
    with torch.inference_mode(), device.autocast(precision):
        model(*inputs)  # memory and kernels are made ready
        started = time.perf_counter()
        model(*inputs)
        seconds = time.perf_counter() - started
    return batch * step_work(small, "denoise").flops / seconds
