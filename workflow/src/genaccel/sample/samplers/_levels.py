"""Noise levels that a sampler visits, and what the network says at each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.spec import SpecError


@dataclass(frozen=True)
class Level:
    """x = signal x0 + noise z, with signal^2 + noise^2 = 1 and z standard normal; float64 on the host."""

    signal: float
    noise: float

    @property
    def angle(self) -> float:
        """0 (clean) to pi / 2 (noise alone); arctan of noise over signal.

        On the cosine schedule it grows evenly with the step, but for the clipped last one: a time that is finite
        and smooth from end to end, where noise over signal and its logarithm are not.
        """
        return math.atan2(self.noise, self.signal)

    @property
    def log_snr(self) -> float:
        """Logarithm of signal over noise: half the log-SNR, lambda in the papers; infinite where clean."""
        return math.log(self.signal / self.noise) if self.noise else math.inf


CLEAN = Level(1.0, 0.0)


def levels(schedule: Schedule, sequence: Sequence[int]) -> list[Level]:
    """The level of each step, and after the last one the clean volume's."""
    kept = [float(schedule.alphas_cumprod_exact[step]) for step in sequence]
    return [*(Level(math.sqrt(a), math.sqrt(1 - a)) for a in kept), CLEAN]


def check_eta(eta: float) -> None:
    """Raises SpecError where the share of fresh noise is none."""
    if not 0 <= eta <= 1:
        raise SpecError(f"sample.eta = {eta}; set sample.eta to 0 (deterministic) to 1 (ancestral)")


def predict(denoise: Callable[[Tensor, Tensor], Tensor], x: Tensor, step: int, level: Level) -> tuple[Tensor, Tensor]:
    """The clean volume and the noise in ``x``, as the network sees them.

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: (B, C, D, H, W) at ``level``.
        step: the level's place in the schedule, 0..T-1.

    Returns:
        The clean volume clipped to [-1, 1], and the noise derived anew from it, so that the two stay consistent;
        (B, C, D, H, W) each, in the dtype of ``x``.
    """
    t = torch.full((len(x),), step, dtype=torch.long, device=x.device)
    noise = denoise(x, t).to(x.dtype)
    x0 = ((x - level.noise * noise) / level.signal).clamp(-1, 1)
    return x0, (x - level.signal * x0) / level.noise
