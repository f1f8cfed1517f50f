"""Sampling on a subsequence of the schedule, deterministic to ancestral."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule


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
        schedule: on the device of ``x``.
        noise: returns fresh standard normal noise shaped as ``x``; called steps - 1 times, with eta = 0 never.
        steps: network evaluations; 1 <= steps <= schedule.T; None: all of them.
        eta: share of the ancestral noise, 0..1; with 1 and all steps this is ancestral sampling.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Raises:
        ValueError: where ``steps`` or ``eta`` is out of range.

    Source: Song et al., Denoising Diffusion Implicit Models, ICLR 2021, eqs. 12 and 16, with the predicted clean
    volume clipped to [-1, 1] and the noise derived anew from it, so that the two stay consistent.
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"ddim: eta = {eta}; use 0 (deterministic) to 1 (ancestral)")
    sequence = timesteps(schedule.T, steps)
    # Beyond the last step lies x0, where nothing of the noise is left.
    remaining = [float(schedule.alphas_cumprod_exact[step]) for step in sequence] + [1.0]
    for index, step in enumerate(sequence):
        t = torch.full((len(x),), step, dtype=torch.long, device=x.device)
        now, then = remaining[index], remaining[index + 1]
        x0 = schedule.predict_x0(x, t, denoise(x, t)).clamp(-1, 1)
        direction = (x - math.sqrt(now) * x0) / math.sqrt(1 - now)
        sigma = eta * math.sqrt((1 - then) / (1 - now) * (1 - now / then))
        x = math.sqrt(then) * x0 + math.sqrt(max(1 - then - sigma**2, 0.0)) * direction
        if sigma:
            x = x + sigma * noise()
    return x


def timesteps(T: int, steps: int | None) -> list[int]:
    """Falling steps from T - 1, as evenly spaced as integers can be, the leap from the last to x0 included.

    Source: Lin et al., Common Diffusion Noise Schedules and Sample Steps Are Flawed, WACV 2024, section 3.3
    ("trailing": starting below T - 1, where noise is left out, shifts the result).
    """
    steps = T if steps is None else steps
    if not 1 <= steps <= T:
        raise ValueError(f"ddim: steps = {steps}, but the schedule has T = {T}; set sample.steps to 1..{T}")
    return [T * k // steps - 1 for k in range(steps, 0, -1)]
