"""DPM-Solver++(2M): a second-order multistep solver of the probability flow that works on the clean volume."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import Level, levels, predict
from genaccel.sample.timesteps import timesteps


@torch.no_grad()
def dpm_solver_pp(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    noise: Callable[[], Tensor],
    steps: int | None = None,
) -> Tensor:
    """Deterministic sampling with the clean volume extrapolated from the last two predictions.

    The first step is DDIM's for want of a second prediction, and so is the last, which leaps to an infinite lambda
    (lower order at the end also keeps few steps stable).

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: the start, standard normal, (B, C, D, H, W).
        schedule: its ``alphas_cumprod_exact`` gives the levels.
        noise: never called.
        steps: network evaluations; 1 <= steps <= schedule.T; None: all of them.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Raises:
        SpecError: where ``steps`` is out of range.

    Source: Lu et al., DPM-Solver++: Fast Solver for Guided Sampling of Diffusion Probabilistic Models, 2022
    (arXiv:2211.01095), algorithm 2, with the predicted clean volume clipped to [-1, 1].
    """
    sequence = timesteps(schedule, steps)
    earlier: tuple[Level, Tensor] | None = None
    for step, (now, then) in zip(sequence, pairwise(levels(schedule, sequence)), strict=True):
        x0, _ = predict(denoise, x, step, now)
        ahead = then.log_snr - now.log_snr
        target = x0
        if earlier is not None and math.isfinite(ahead):
            level, before = earlier
            target = x0 + ahead / (2 * (now.log_snr - level.log_snr)) * (x0 - before)
        x = then.noise / now.noise * x - then.signal * math.expm1(-ahead) * target
        earlier = now, x0
    return x
