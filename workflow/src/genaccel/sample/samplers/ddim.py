"""Sampling on a subsequence of the schedule, deterministic to ancestral."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import check_eta, levels, predict
from genaccel.sample.timesteps import timesteps


@torch.no_grad()
def ddim(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    noise: Callable[[], Tensor],
    steps: int | None = None,
    eta: float = 0.0,
) -> Tensor:
    """Deterministic (eta = 0) to ancestral (eta = 1) sampling on a subsequence of the schedule.

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: the start, standard normal, (B, C, D, H, W).
        schedule: its ``alphas_cumprod_exact`` gives the levels.
        noise: returns fresh standard normal noise shaped as ``x``; called steps - 1 times, with eta = 0 never.
        steps: network evaluations; 1 <= steps <= schedule.T; None: all of them.
        eta: share of the ancestral noise, 0..1; with 1 and all steps this is ancestral sampling.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Raises:
        SpecError: where ``steps`` or ``eta`` is out of range.

    Source: Song et al., Denoising Diffusion Implicit Models, ICLR 2021, eqs. 12 and 16, with the predicted clean
    volume clipped to [-1, 1] and the noise derived anew from it, so that the two stay consistent.
    """
    check_eta(eta)
    sequence = timesteps(schedule, steps)
    for step, (now, then) in zip(sequence, pairwise(levels(schedule, sequence)), strict=True):
        x0, direction = predict(denoise, x, step, now)
        sigma = eta * then.noise / now.noise * math.sqrt(1 - (now.signal / then.signal) ** 2)
        x = then.signal * x0 + math.sqrt(max(then.noise**2 - sigma**2, 0.0)) * direction
        if sigma:
            x = x + sigma * noise()
    return x
