"""The diffusion that Med-DDPM is trained on: its noise schedule, posterior and loss."""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

BUFFERS = (
    "betas",
    "alphas_cumprod",
    "alphas_cumprod_prev",
    "sqrt_alphas_cumprod",
    "sqrt_one_minus_alphas_cumprod",
    "log_one_minus_alphas_cumprod",
    "sqrt_recip_alphas_cumprod",
    "sqrt_recipm1_alphas_cumprod",
    "posterior_variance",
    "posterior_log_variance_clipped",
    "posterior_mean_coef1",
    "posterior_mean_coef2",
    "posterior_mean_coef3",
)
"""Attributes of a schedule, (T,) FP32 each, as the published checkpoints name them."""


class Schedule:
    """Cosine schedule of T steps, computed in float64 and stored in FP32.

    ``t`` is always (B,) integers in 0..T-1; volumes are (B, C, D, H, W).

    Args:
        timesteps: T.

    Attributes:
        T: steps.
        alphas_cumprod_exact: (T,) float64 on the host, for samplers that derive their own coefficients: near
            1, where the first steps are, FP32 keeps three digits of 1 - alphas_cumprod.

    Sources: Nichol and Dhariwal, Improved Denoising Diffusion Probabilistic Models, ICML 2021, eq. 17 (cosine,
    s = 0.008, here with betas clipped to 0.999); Ho et al., Denoising Diffusion Probabilistic Models, NeurIPS
    2020, eqs. 4, 7 and 14. ``posterior_mean_coef3`` = 1 - ``posterior_mean_coef2`` is kept for the checkpoints'
    sake and used nowhere.
    """

    def __init__(self, timesteps: int) -> None:
        if timesteps < 1:
            raise ValueError(f"Schedule: {timesteps} steps; at least 1 is needed")
        self.T = timesteps
        betas = cosine_betas(timesteps)
        alphas = 1 - betas
        cumprod = np.cumprod(alphas)
        previous = np.append(1.0, cumprod[:-1])
        variance = betas * (1 - previous) / (1 - cumprod)
        coef2 = (1 - previous) * np.sqrt(alphas) / (1 - cumprod)
        self.alphas_cumprod_exact = cumprod
        self.betas = _float32(betas)
        self.alphas_cumprod = _float32(cumprod)
        self.alphas_cumprod_prev = _float32(previous)
        self.sqrt_alphas_cumprod = _float32(np.sqrt(cumprod))
        self.sqrt_one_minus_alphas_cumprod = _float32(np.sqrt(1 - cumprod))
        self.log_one_minus_alphas_cumprod = _float32(np.log(1 - cumprod))
        self.sqrt_recip_alphas_cumprod = _float32(np.sqrt(1 / cumprod))
        self.sqrt_recipm1_alphas_cumprod = _float32(np.sqrt(1 / cumprod - 1))
        self.posterior_variance = _float32(variance)
        # The variance at t = 0 is 0, whose logarithm is not finite; no noise is added there.
        self.posterior_log_variance_clipped = _float32(np.log(np.maximum(variance, 1e-20)))
        self.posterior_mean_coef1 = _float32(betas * np.sqrt(previous) / (1 - cumprod))
        self.posterior_mean_coef2 = _float32(coef2)
        self.posterior_mean_coef3 = _float32(1 - coef2)

    def to(self, device: torch.device | str) -> Self:
        """Moves the buffers, in place, and returns the schedule."""
        for name in BUFFERS:
            setattr(self, name, getattr(self, name).to(device))
        return self

    def buffers(self) -> dict[str, Tensor]:
        """The buffers by their published names."""
        return {name: getattr(self, name) for name in BUFFERS}

    def q_sample(self, x0: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """``x0`` diffused to step ``t``: sqrt(a_t) x0 + sqrt(1 - a_t) noise."""
        return _at(self.sqrt_alphas_cumprod, t, x0) * x0 + _at(self.sqrt_one_minus_alphas_cumprod, t, x0) * noise

    def predict_x0(self, x_t: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """The clean volume that ``noise`` in ``x_t`` implies, not clipped; inverts ``q_sample``."""
        return _at(self.sqrt_recip_alphas_cumprod, t, x_t) * x_t - _at(self.sqrt_recipm1_alphas_cumprod, t, x_t) * noise

    def posterior(self, x0: Tensor, x_t: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """q(x_{t-1} | x_t, x0).

        Returns:
            Its mean, shaped as ``x_t``, and its log variance, floored at log 1e-20, (B, 1, 1, 1, 1).
        """
        mean = _at(self.posterior_mean_coef1, t, x_t) * x0 + _at(self.posterior_mean_coef2, t, x_t) * x_t
        return mean, _at(self.posterior_log_variance_clipped, t, x_t)

    def training_loss(self, model: nn.Module, x0: Tensor, cond: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Mean absolute error of the predicted noise, in FP32; a scalar.

        Args:
            model: predicts the noise of (B, C + C', D, H, W) at (B,).
            x0: clean volumes, (B, C, D, H, W).
            cond: encoded masks, (B, C', D, H, W).
            t: steps, (B,).
            noise: standard normal, shaped as ``x0``.
        """
        predicted = model(torch.cat([self.q_sample(x0, t, noise), cond], dim=1), t)
        return (noise - predicted).abs().mean()


def cosine_betas(timesteps: int, s: float = 0.008) -> np.ndarray:
    """Variances added at each step; (T,) float64 within 0..0.999."""
    progress = np.linspace(0, timesteps, timesteps + 1) / timesteps
    cumprod = np.cos((progress + s) / (1 + s) * math.pi / 2) ** 2
    cumprod /= cumprod[0]
    return np.clip(1 - cumprod[1:] / cumprod[:-1], 0, 0.999)


def _float32(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def _at(buffer: Tensor, t: Tensor, like: Tensor) -> Tensor:
    """The coefficient of each batch element's step, shaped to multiply ``like``."""
    return buffer[t].view(-1, *[1] * (like.ndim - 1))
