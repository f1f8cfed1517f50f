"""The network as samplers see it: noise of a volume at a step, under its mask."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from genaccel.device import Device
from genaccel.med_ddpm.network import Network


def denoiser(
    network: Network,
    condition: Tensor,
    device: Device,
    after: Callable[[], object] = lambda: None,
) -> Callable[[Tensor, Tensor], Tensor]:
    """Binds masks to a network.

    Args:
        network: predicts noise from image and mask channels, (B, C + C', D, H, W), (B,), in FP32.
        condition: encoded masks, (B, C', D, H, W).
        device: decides whether the network always gets the same number of volumes.
        after: called after each evaluation, for progress.

    Returns:
        ``denoise(x, t)``: (B, C, D, H, W), (B,) -> (B, C, D, H, W) in FP32.
    """

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        with torch.inference_mode():
            inputs = torch.cat([x, condition], dim=1)
            predicted = (
                in_fixed_batches(network, inputs, t, device.fixed_batch) if device.fixed_batch else network(inputs, t)
            )
        device.mark_step()
        after()
        return predicted

    return denoise


def in_fixed_batches(network: Network, inputs: Tensor, t: Tensor, size: int) -> Tensor:
    """``network(inputs, t)`` in batches of exactly ``size``, the last filled up with copies of its first volume."""
    predicted = []
    for start in range(0, len(inputs), size):
        chosen = torch.arange(start, start + size)
        chosen[chosen >= len(inputs)] = start
        predicted.append(network(inputs[chosen], t[chosen]))
    return torch.cat(predicted)[: len(inputs)]
