"""Diffusion exponential integrator: the noise's polynomial is integrated exactly against the schedule."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import Level
from genaccel.sample.samplers._multistep import integrals, multistep


@torch.no_grad()
def deis(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    noise: Callable[[], Tensor],
    steps: int | None = None,
    order: int = 3,
) -> Tensor:
    """Deterministic sampling with a polynomial through the last ``order`` predictions (tAB-DEIS).

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: the start, standard normal, (B, C, D, H, W).
        schedule: its ``alphas_cumprod_exact`` gives the levels.
        noise: never called.
        steps: network evaluations; 1 <= steps <= schedule.T; None: all of them.
        order: predictions a step, 1..4, fewer in the first steps; 1 is ddim.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Raises:
        SpecError: where ``steps`` or ``order`` is out of range.

    Source: Zhang and Chen, Fast Sampling of Diffusion Models with Exponential Integrator, ICLR 2023, eqs. 14 and 15.
    The time t of its polynomials is the level's angle, which the cosine schedule moves through evenly: the noise is
    smooth in it down to the clean volume, and nothing between two steps of the schedule needs interpolation.
    """
    return multistep(denoise, x, schedule, steps, order, exponential_weights)


def exponential_weights(past: Sequence[Level], then: Level) -> list[float]:
    """Integrals of each level's polynomial over noise / signal = tan(angle), times the next signal.

    Args:
        past: levels of the predictions, newest first; steps start at the first one.
        then: where the step ends.
    """
    return [then.signal * integral for integral in integrals(past, then, lambda angle: 1 / math.cos(angle) ** 2)]
