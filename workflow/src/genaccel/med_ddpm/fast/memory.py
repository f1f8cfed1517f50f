"""Predicted peak of device memory on the fused path."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from genaccel.med_ddpm import fast
from genaccel.med_ddpm.fast.sampling import fused_network
from genaccel.med_ddpm.fast.training import FusedTraining
from genaccel.med_ddpm.memory import Accelerator, Memory, Meter, meta_inputs, size_of
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet

KERNELS = ("_adam", "_group_norm", "_head", "_patches", "_residual", "_upsample")
"""Modules that define Triton's kernels."""


@functools.cache
def training_memory(spec: MedDDPMSpec, batch: int) -> Memory:
    """Peak of one training step in bytes, with Adam's state and the average, as ``med_ddpm.memory`` counts it.

    The step runs on the meta device as it does on a GPU, except that kernels are not started: what is counted is every
    array that they are given. The library's convolutions keep a copy of both volumes beside them in the backward pass.
    At 128^3 and batch 1 the prediction is 2 % above the allocator's peak on an H200.

    Args:
        spec: network and grid.
        batch: volumes a device and micro-step.
    """
    x0, cond, t = meta_inputs(spec, batch)
    inputs = torch.cat([x0, cond], dim=1)
    with _not_started(), torch.no_grad():
        training = FusedTraining(_model(spec), learning_rate=1e-4, ema_decay=0.999)
        with Meter(channels_last=True) as meter, Accelerator():
            training.accumulate(inputs, t, torch.empty_like(x0))
    weights = size_of(training.state.weights)
    return Memory(
        weights=weights + size_of(training.state.half),
        gradients=size_of(training.gradient),
        optimizer=size_of(training.state.mean, training.state.square),
        ema=size_of(training.state.average),
        activations=size_of(inputs, x0),
        transient=meter.peak,
    )


@functools.cache
def denoising_memory(spec: MedDDPMSpec, batch: int) -> Memory:
    """Peak of one denoising step in bytes: the model's own weights, the flat ones and their copy in BF16 are all there.

    At 128^3 and batch 1 the prediction is 6 % above the allocator's peak on an H200.
    """
    x, cond, t = meta_inputs(spec, batch)
    inputs, model = torch.cat([x, cond], dim=1), _model(spec)
    with _not_started():
        network = fused_network(model)
        with Meter() as meter, Accelerator():
            network(inputs, t)
    weights = size_of(*model.parameters())
    return Memory(2 * weights + weights // 2, 0, 0, 0, activations=size_of(inputs), transient=meter.peak)


def _model(spec: MedDDPMSpec) -> UNet:
    with torch.device("meta"):
        return UNet(spec.model_copy(update={"dropout": 0.0}))


class _Kernels(ModuleType):
    """A module whose kernels do nothing, and whose numbers of rows are no one's concern."""

    def __getattr__(self, name: str) -> _Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Kernel()


class _Kernel:
    def __getitem__(self, grid: tuple[int, ...]) -> _Kernel:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None

    def __rfloordiv__(self, other: int) -> int:
        return other


@contextmanager
def _not_started() -> Iterator[None]:
    """Operations take their way on a GPU, with kernels that do nothing; Triton need not be there."""
    package = vars(fast)
    before = {name: package[name] for name in KERNELS if name in package}
    # `from package import name` takes the package's attribute where it has one.
    package.update({name: _Kernels(name) for name in KERNELS})
    try:
        yield
    finally:
        for name in KERNELS:
            del package[name]
        package.update(before)
