"""Ancestral sampling: the reverse of the diffusion, one step at a time."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule


@torch.no_grad()
def ddpm(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    noise: Callable[[], Tensor],
) -> Tensor:
    """Every step of the schedule, with the posterior's variance.

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: the start, standard normal, (B, C, D, H, W).
        schedule: on the device of ``x``.
        noise: returns fresh standard normal noise shaped as ``x``; called T - 1 times.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Source: Ho et al., Denoising Diffusion Probabilistic Models, NeurIPS 2020, algorithm 2, with the predicted
    clean volume clipped to [-1, 1] at each step.
    """
    for step in reversed(range(schedule.T)):
        t = torch.full((len(x),), step, dtype=torch.long, device=x.device)
        x = ancestral_step(denoise(x, t), x, t, schedule, noise() if step else None)
    return x


def ancestral_step(predicted: Tensor, x: Tensor, t: Tensor, schedule: Schedule, noise: Tensor | None) -> Tensor:
    """x_{t-1} from x_t.

    Args:
        predicted: the network's noise, (B, C, D, H, W).
        x: x_t, (B, C, D, H, W).
        t: one and the same step throughout the batch, (B,).
        schedule: on the device of ``x``.
        noise: standard normal, shaped as ``x``; None at the last step, t = 0, which adds none.
    """
    x0 = schedule.predict_x0(x, t, predicted).clamp(-1, 1)
    mean, log_variance = schedule.posterior(x0, x, t)
    return mean if noise is None else mean + (0.5 * log_variance).exp() * noise
