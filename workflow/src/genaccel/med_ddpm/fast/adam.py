"""Adam and the moving average of the weights in one pass, with FP32 master weights and a BF16 copy for the kernels.

Sources: Kingma and Ba, Adam, ICLR 2015, algorithm 1; the average as in Dorjsembe et al., Med-DDPM, IEEE JBHI 2024.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import triton_runs

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8


class AdamState(NamedTuple):
    """Flat FP32 arrays of equal length, and the BF16 copy."""

    weights: Tensor
    mean: Tensor
    """Running mean of the gradient."""
    square: Tensor
    """Running mean of its square."""
    average: Tensor
    """Moving average of the weights."""
    half: Tensor
    """The weights in BF16."""


def adam_ema(
    state: AdamState, gradient: Tensor, step: Tensor, rate: float, decay: float, start: int, interval: int
) -> None:
    """One step, in place.

    Args:
        gradient: FP32, as long as the state's arrays.
        step: number of this step, counted from 1; one int64 on the device, so that a recorded graph can count.
        rate: learning rate.
        decay: weight of the old average; the average is a plain copy until ``start``.
        interval: steps between updates of the average.
    """
    if not triton_runs(gradient):
        number = int(step)
        state.mean.lerp_(gradient, 1 - BETA1)
        state.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        divisor = (state.square / (1 - BETA2**number)).sqrt_().add_(EPS)
        state.weights.addcdiv_(state.mean, divisor, value=-rate / (1 - BETA1**number))
        if number % interval == 0:
            state.average.lerp_(state.weights, 1.0 if number < start else 1 - decay)
        state.half.copy_(state.weights)
        return
    from genaccel.med_ddpm.fast import _adam

    _adam.adam_ema[(-(-len(gradient) // _adam.BLOCK),)](
        *state, gradient, step, len(gradient), rate, decay, start, interval, BETA1, BETA2, EPS, math.log2(BETA1),
        math.log2(BETA2), _adam.BLOCK,
    )  # fmt: skip


def flat_state(weights: Tensor) -> AdamState:
    """The state that training starts from: (N,) FP32 weights, which it takes over."""
    zeros = torch.zeros_like(weights)
    return AdamState(weights, zeros, zeros.clone(), weights.clone(), weights.to(torch.bfloat16))
