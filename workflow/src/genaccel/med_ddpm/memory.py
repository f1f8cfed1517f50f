"""Predicted peak of device memory: what fits is known before a job waits in a queue."""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from genaccel.med_ddpm.blocks import Attention
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.variant import MODULES, Kernels, Precision


@dataclass(frozen=True)
class Memory:
    """Bytes on the device at the peak, by part.

    Attributes:
        weights: parameters, FP32.
        gradients: as many; 0 for a denoising step.
        optimizer: Adam's two moments; 0 for a denoising step.
        ema: averaged copy of the weights; 0 for a denoising step.
        activations: inputs, and what the forward pass leaves for the backward one.
        transient: what comes on top at the worst moment, e.g. the gradients of two volumes of features.
    """

    weights: int
    gradients: int
    optimizer: int
    ema: int
    activations: int
    transient: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.ema + self.activations + self.transient


def peak_memory(
    spec: MedDDPMSpec,
    step: Literal["train", "denoise"],
    batch: int,
    precision: Precision,
    kernels: Kernels,
    gradient_checkpointing: bool = False,
) -> Memory:
    """Peak of one step in bytes with the kernels of a variant.

    Args:
        spec: network and grid.
        batch: volumes a device.
        precision: of the variant.
        kernels: of the variant; fused ones recompute what they need, whatever ``gradient_checkpointing`` says.
    """
    if kernels == "fused":
        module = importlib.import_module(MODULES[kernels])
        return module.training_memory(spec, batch) if step == "train" else module.denoising_memory(spec, batch)
    if step == "train":
        return training_memory(spec, batch, precision, gradient_checkpointing)
    return denoising_memory(spec, batch, precision)


@functools.cache  # a training says it at its start and writes it at its end
def training_memory(
    spec: MedDDPMSpec, batch: int, precision: Precision = "fp32", gradient_checkpointing: bool = False
) -> Memory:
    """Peak of one training step in bytes: Adam, FP32 master weights, L1 loss, EMA.

    The step runs on the meta device, where tensors have sizes and lifetimes but no data, and every storage is
    counted from its making to its release: once, however many tensors share it. What lives after the forward
    pass is ``activations``; the highest point of either pass above it is ``transient``. Weights, gradients
    (which accumulation keeps alive), moments and average are counted by their number.

    The reordered copies that cuDNN's FP32 convolutions keep beside them are taken as measured: one of the input
    and one of the output's gradient in the backward pass; in TF32 one of the input in the forward pass too. In
    bf16 there are none.

    Not in it: the allocator's rounding and fragmentation, cuBLAS's workspace (below 0.1 GiB), the device's context
    (about 0.5 GiB outside the allocator), DDP's buckets (as many bytes as the gradients), and Adam's temporaries,
    for which the activations have made room by then. A compiled network needs less.

    On an H200 the allocator's measured peaks of the published networks' steps stayed within 3% of it.

    Args:
        spec: network and grid.
        batch: volumes a device and micro-step.
        precision: ``bf16`` and ``fp16`` are autocast, with its copies of the weights; ``tf32`` stores FP32.
        gradient_checkpointing: recompute inside residual and attention blocks.
    """
    model = _network(spec, precision, gradient_checkpointing)
    for parameter in model.parameters():
        parameter.grad = torch.empty_like(parameter)
    schedule = Schedule(spec.timesteps).to("meta")
    x0, cond, t = meta_inputs(spec, batch)
    with Meter(tf32=precision == "tf32") as meter:
        noise = torch.empty_like(x0)
        loss = schedule.training_loss(model, x0, cond, t, noise)
        activations = meter.live
        loss.backward()
    weights = size_of(*model.parameters())
    return Memory(
        weights=weights,
        gradients=weights,
        optimizer=2 * weights,
        ema=weights,
        activations=size_of(x0, cond) + activations,
        transient=meter.peak - activations,
    )


def denoising_memory(spec: MedDDPMSpec, batch: int, precision: Precision = "fp32") -> Memory:
    """Peak of one denoising step in bytes, as ``training_memory`` counts, without gradients.

    ``activations`` are the inputs alone, and ``transient`` holds the skip connections.
    """
    model = _network(spec, precision, gradient_checkpointing=False)
    x, cond, t = meta_inputs(spec, batch)
    with torch.no_grad(), Meter(tf32=precision == "tf32") as meter:
        model(torch.cat([x, cond], dim=1), t)
    return Memory(size_of(*model.parameters()), 0, 0, 0, activations=size_of(x, cond), transient=meter.peak)


def _network(spec: MedDDPMSpec, precision: Precision, gradient_checkpointing: bool) -> UNet:
    with torch.device("meta"):
        model = UNet(spec, gradient_checkpointing)
    accelerator = Accelerator(precision)
    # Layer by layer, not around the whole step: recomputation in the backward pass would run outside of it.
    for layer in model.modules():
        if isinstance(layer, (nn.Conv3d, nn.Linear, Attention)):
            layer.forward = accelerator.around(layer.forward)
    return model


def meta_inputs(spec: MedDDPMSpec, batch: int) -> tuple[Tensor, Tensor, Tensor]:
    """Image and condition (B, C, D, H, W) and time steps (B,), without data."""

    def volumes(channels: int) -> Tensor:
        return torch.empty(batch, channels, *spec.tensor_shape, device="meta")

    return volumes(len(spec.image)), volumes(len(spec.condition)), torch.empty(batch, dtype=torch.long, device="meta")


def size_of(*tensors: Tensor) -> int:
    """Bytes of tensors."""
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class Meter(TorchDispatchMode):
    """Bytes of the storages that operations make under it: alive now, and at the highest point.

    Args:
        tf32: whether FP32 convolutions compute in TF32, which takes a copy of the input.
        channels_last: whether half-precision convolutions are over channels-last volumes, whose backward takes copies
            as FP32's does.
    """

    def __init__(self, tf32: bool = False, channels_last: bool = False) -> None:
        super().__init__()
        self.tf32, self.channels_last = tf32, channels_last
        self.live = self.peak = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {id(x.untyped_storage()) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and id(storage := tensor.untyped_storage()) not in given:
                self._add(storage)
        self.peak = max(self.peak, self.live + self._workspace(func, args))
        return result

    def _workspace(self, func: Any, args: tuple[Any, ...]) -> int:
        if func is torch.ops.aten.convolution_backward.default and (
            self.channels_last or args[0].dtype is torch.float32
        ):
            gradient, x = args[:2]
            return size_of(gradient, x)
        if func is torch.ops.aten.convolution.default and args[0].dtype is torch.float32 and self.tf32:
            return size_of(args[0])
        return 0

    def _add(self, storage: torch.UntypedStorage) -> None:
        if storage in self._known:
            return
        self._known.add(storage)
        self.live += storage.nbytes()
        weakref.finalize(storage, self._release, storage.nbytes())

    def _release(self, size: int) -> None:
        self.live -= size


class Accelerator(TorchFunctionMode):
    """What an accelerator does and the meta device does not: autocast, and attention without its matrix."""

    # Autocast's list, as far as the network uses it.
    LOWERED = frozenset({F.conv1d, F.conv3d, F.linear, F.scaled_dot_product_attention})

    def __init__(self, precision: Precision = "fp32") -> None:
        super().__init__()
        # FP16 is as large.
        self.bf16 = precision in ("bf16", "fp16")
        self._weights: dict[int, Tensor] = {}

    def around(self, forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def wrapped(*inputs: Tensor) -> Tensor:
            with self:
                return forward(*inputs)

        return wrapped

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = dict(kwargs or {})
        if self.bf16 and func in self.LOWERED:
            args, kwargs = tree_map_only(Tensor, self._lower, (args, kwargs))
        if func is F.scaled_dot_product_attention:
            return torch.ops.aten._scaled_dot_product_efficient_attention(*args, None, torch.is_grad_enabled())[0]
        return func(*args, **kwargs)

    def _lower(self, tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            return tensor.to(torch.bfloat16)
        # Autocast keeps its copies of the weights until it ends.
        if id(tensor) not in self._weights:
            self._weights[id(tensor)] = tensor.to(torch.bfloat16)
        return self._weights[id(tensor)]
