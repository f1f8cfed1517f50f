"""Pseudo linear multistep: DDIM's step with a mean of the last noises, by Adams and Bashforth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import Level
from genaccel.sample.samplers._multistep import integrals, multistep


@torch.no_grad()
def ipndm(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    noise: Callable[[], Tensor],
    steps: int | None = None,
    order: int = 3,
) -> Tensor:
    """Deterministic sampling: DDIM's step with the mean noise that the last ``order`` predictions extrapolate to.

    Converges at order 2 with ``order`` 2 and above (as Liu et al. prove): the mean over a step takes no account of
    where in the step the noise counts most. ``deis`` does. Higher ``order`` still lowers the error of few steps.

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

    Sources: Liu et al., Pseudo Numerical Methods for Diffusion Models on Manifolds, ICLR 2022, eqs. 11 and 12; Zhang
    and Chen, Fast Sampling of Diffusion Models with Exponential Integrator, ICLR 2023 (iPNDM: lower
    order in the first steps, instead of Runge-Kutta). Their constants, such as 3/2 and -1/2, hold for even steps; here
    they follow from the steps taken, and are those constants where steps are even.
    """
    return multistep(denoise, x, schedule, steps, order, mean_weights)


def mean_weights(past: Sequence[Level], then: Level) -> list[float]:
    """Means of each level's polynomial over the step, times what DDIM gives to the noise.

    Args:
        past: levels of the predictions, newest first; steps start at the first one.
        then: where the step ends.
    """
    transfer = then.noise - then.signal * past[0].noise / past[0].signal
    length = then.angle - past[0].angle
    return [transfer * integral / length for integral in integrals(past, then)]
