"""Training on the fused network: FP32 master weights, BF16 volumes, one kernel for Adam and the moving average."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from genaccel.device.graph import Graphed
from genaccel.med_ddpm.fast.adam import adam_ema, flat_state
from genaccel.med_ddpm.fast.network import FusedUNet
from genaccel.med_ddpm.unet import UNet
from genaccel.spec import SpecError


class FusedTraining:
    """Optimizer steps of a noise predictor on the L1 loss.

    Args:
        model: on its device; from now on its parameters are views of the master weights, so that it always
            holds the trained values.
        learning_rate: Adam's.
        ema_decay: weight of the old average.
        ema_start: steps during which the average is a copy.
        ema_interval: steps between updates of the average.
        cuda_graphs: record the step as one graph a shape of input; has no effect off CUDA.
        dtype: of the volumes.

    Raises:
        SpecError: the network has dropout, which this path lacks.
    """

    def __init__(
        self,
        model: UNet,
        learning_rate: float,
        ema_decay: float,
        ema_start: int = 0,
        ema_interval: int = 1,
        cuda_graphs: bool = True,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        if any(module.p > 0 for module in model.modules() if isinstance(module, torch.nn.Dropout)):
            raise SpecError(
                "the fused kernels have no dropout; set models.<name>.dropout: 0, or a variant with kernels: stock"
            )
        self.network = FusedUNet(model, dtype)
        self.state = flat_state(self.network.weights)._replace(half=self.network.half)
        self.gradient = torch.zeros_like(self.network.weights)
        self._parameters = self.network.parameters(self.gradient)
        for name, parameter in model.named_parameters():
            parameter.data = self.network.layout.view(self.state.weights, name)
        self._rate, self._ema = learning_rate, (ema_decay, ema_start, ema_interval)
        device = self.network.weights.device
        self._number = torch.zeros((), dtype=torch.int64, device=device)
        self._first: Callable[..., Tensor] = self._loss
        self._more: Callable[..., Tensor] = self._loss_of_more
        if cuda_graphs and device.type == "cuda":
            self._first, self._more = Graphed(self._loss), Graphed(self._loss_of_more, kept=(self.gradient,))
        self._fresh = True

    @torch.no_grad()
    def accumulate(self, inputs: Tensor, t: Tensor, noise: Tensor, share: float = 1.0) -> Tensor:
        """Adds ``share`` of a batch's gradient; returns ``share`` of its loss, on the device.

        Args:
            inputs: image channels at step ``t``, then the condition's, (B, in_channels, D, H, W).
            t: (B,).
            noise: what the network is to predict, (B, out_channels, D, H, W).
        """
        scale = torch.full((), share, device=inputs.device)
        run, self._fresh = self._first if self._fresh else self._more, False
        return run(inputs, t, noise, scale).clone()

    @torch.no_grad()
    def update(self) -> None:
        """One optimizer step on the gradient; the next ``accumulate`` starts a new one."""
        self._number += 1
        adam_ema(self.state, self.gradient, self._number, self._rate, *self._ema)
        self._fresh = True

    def step(self, inputs: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """``accumulate`` and ``update``; the loss."""
        loss = self.accumulate(inputs, t, noise)
        self.update()
        return loss

    def _loss(self, inputs: Tensor, t: Tensor, noise: Tensor, share: Tensor) -> Tensor:
        predicted, record = self.network.forward(self._parameters, inputs, t, keep=True)
        difference = predicted - noise
        self.network.backward(self._parameters, record, difference.sign() * (share / difference.numel()))
        return difference.abs().mean() * share

    def _loss_of_more(self, inputs: Tensor, t: Tensor, noise: Tensor, share: Tensor) -> Tensor:
        self._parameters.adds = True
        try:
            return self._loss(inputs, t, noise, share)
        finally:
            self._parameters.adds = False

    def averages(self) -> dict[str, Tensor]:
        """The moving average of each parameter, by its name."""
        return {name: self.network.layout.view(self.state.average, name) for name in self.network.layout.shapes}

    def state_dict(self) -> dict[str, Any]:
        """What resuming takes beside the model's weights."""
        return {
            "mean": self.state.mean,
            "square": self.state.square,
            "average": self.state.average,
            "step": self._number,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a state; the model's weights were loaded before."""
        for name in ("mean", "square", "average"):
            getattr(self.state, name).copy_(state[name])
        self._number.copy_(state["step"])
        self.state.half.copy_(self.state.weights)
