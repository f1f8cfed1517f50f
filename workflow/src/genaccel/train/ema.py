"""Exponential moving average of the weights."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from genaccel.train.spec import EMASpec


class EMA:
    """Average of a model's weights in FP32; a plain copy of them until ``start``.

    Source: Dorjsembe et al., Med-DDPM, IEEE JBHI 2024 (decay 0.995, start 2000, interval 10).
    """

    def __init__(self, model: nn.Module, spec: EMASpec) -> None:
        self.spec = spec
        self.weights = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """After optimizer step ``step``, counted from 1."""
        if step % self.spec.interval:
            return
        state = model.state_dict()
        average, current = list(self.weights.values()), [state[name] for name in self.weights]
        if step < self.spec.start:
            torch._foreach_copy_(average, current)
        else:
            torch._foreach_lerp_(average, current, 1 - self.spec.decay)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, value in self.weights.items():
            value.copy_(weights[name])
