"""The fused network as samplers call it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from genaccel.device.graph import Graphed
from genaccel.med_ddpm.fast.network import FusedUNet
from genaccel.med_ddpm.unet import UNet


def fused_network(
    model: UNet, cuda_graphs: bool = True, dtype: torch.dtype = torch.bfloat16
) -> Callable[[Tensor, Tensor], Tensor]:
    """A UNet's function on fused kernels, with a copy of its weights.

    Args:
        model: on its device.
        cuda_graphs: record one graph a shape of input; has no effect off CUDA.
        dtype: of the volumes.

    Returns:
        (B, in_channels, D, H, W), (B,) -> noise, (B, out_channels, D, H, W) FP32.
    """
    network = FusedUNet(model, dtype)
    parameters = network.parameters()

    def predict(x: Tensor, t: Tensor) -> Tensor:
        return network.forward(parameters, x, t)[0]

    step = Graphed(predict) if cuda_graphs and next(model.parameters()).is_cuda else predict

    @torch.no_grad()
    def call(x: Tensor, t: Tensor) -> Tensor:
        model.check_input(x)
        return step(x, t).clone()

    return call
