"""The network as a variant runs it: dtype of the weights, layout, autocast, compiler, CUDA graphs, fused kernels."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from genaccel.device import Device
from genaccel.med_ddpm.unet import UNet
from genaccel.variant import Variant

Network = Callable[[Tensor, Tensor], Tensor]
"""(B, C + C', D, H, W), (B,) -> (B, C, D, H, W)."""

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last_3d}


def sampling_network(model: UNet, variant: Variant, device: Device) -> Network:
    """The network as a variant runs it in sampling.

    Nothing global is set here: call ``device.apply(variant)`` first.

    Args:
        model: in FP32; moved to the device, switched to evaluation and cast in place.
        variant: its switches of weights, layout, autocast, compiler, graphs and kernels.
        device: what the model runs on.

    Returns:
        ``network(inputs, t)``: (B, C + C', D, H, W) FP32, (B,) int64, both on the device -> noise (B, C, D, H, W) in
        FP32, in memory of its own, which no later call overwrites. Gradients are not computed.
    """
    model = model.eval().to(device.torch).requires_grad_(False)
    if variant.kernels == "fused":
        return kernels(variant).fused_network(model, cuda_graphs=variant.cuda_graphs)
    dtype, layout = DTYPES[variant.weights], FORMATS[variant.memory_format]
    model.to(dtype=dtype, memory_format=layout)
    network = compiled(model, variant)

    def forward(inputs: Tensor, t: Tensor) -> Tensor:
        with device.autocast(variant.autocast):
            return network(inputs.to(dtype, memory_format=layout), t)

    step = device.graphed(forward) if variant.cuda_graphs else forward

    def predict(inputs: Tensor, t: Tensor) -> Tensor:
        with torch.inference_mode():
            # A copy in any case: graphs write every output to the same place, and samplers keep earlier ones.
            return step(inputs, t).to(torch.float32, memory_format=torch.contiguous_format, copy=True)

    return predict


def training_network(model: nn.Module, variant: Variant) -> Network:
    """The network as a variant runs it in training, with stock kernels; autocast is the caller's, around the loss too.

    Args:
        model: in FP32, on its device; its kernels are laid out in place, before an optimizer takes them.
        variant: its switches of layout and compiler.
    """
    layout = FORMATS[variant.memory_format]
    model.to(memory_format=layout)
    network = compiled(model, variant)
    return lambda inputs, t: network(inputs.contiguous(memory_format=layout), t)


def compiled(model: nn.Module, variant: Variant) -> Network:
    """The model under ``torch.compile`` in the variant's mode, or as it is."""
    if variant.compile == "off":
        return model
    mode = None if variant.compile == "default" else variant.compile
    # One graph for one shape: a break or a recompilation is an error or a new measurement, never a slow step unseen.
    return torch.compile(model, mode=mode, fullgraph=True, dynamic=False)


def kernels(variant: Variant) -> Any:
    """The module behind the variant's kernels, imported by name, so that editing it reruns its own variants alone."""
    return importlib.import_module(variant.module)
