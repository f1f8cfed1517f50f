"""The noise of the diffusion: standard normal, or with a part that all voxels of a channel share."""

from __future__ import annotations

import torch
from torch import Tensor


def offset_noise(shape: torch.Size, offset: float, generator: torch.Generator) -> Tensor:
    """Standard normal noise plus a normal constant a channel, of standard deviation ``offset``; (C, D, H, W).

    Of plain noise the mean over a volume is next to 0 at every step, so that the loss hardly tells a network that
    takes the mean of x_t for the volume's from one that knows the volume's; sampling then keeps whatever brightness
    its first steps happen to give.

    Sampling keeps to standard normal noise, whose offsets a network trained with this has seen among others.

    Source: Guttenberg, Diffusion with Offset Noise, CrossLabs, 2023.
    """
    noise = torch.randn(shape, generator=generator, device=generator.device)
    if offset:
        noise += offset * torch.randn((shape[0], 1, 1, 1), generator=generator, device=generator.device)
    return noise
