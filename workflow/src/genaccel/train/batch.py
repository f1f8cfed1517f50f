"""What a micro-step learns from: volumes, diffusion steps and noise, all functions of the seed and the position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from genaccel.device import Device
from genaccel.med_ddpm.offset import offset_noise
from genaccel.seeds import derive_seed
from genaccel.train.order import Order
from genaccel.train.processes import Process
from genaccel.train.spec import TrainSpec
from genaccel.train.volumes import Volumes


class Batch(NamedTuple):
    """One device's part of a micro-step, on the device.

    Attributes:
        x0: clean volumes, (B, C, D, H, W).
        cond: encoded masks, (B, C', D, H, W).
        t: diffusion steps, (B,).
        noise: shaped as ``x0``.
        dropout: seed of the dropout.
    """

    x0: Tensor
    cond: Tensor
    t: Tensor
    noise: Tensor
    dropout: int


class Batches:
    """The batches of a training.

    Args:
        volumes: the training split; not empty.
        timesteps: T of the schedule.
        process: which of the processes that train together this is.
    """

    def __init__(self, spec: TrainSpec, volumes: Volumes, timesteps: int, device: Device, process: Process) -> None:
        self.spec, self.volumes, self.timesteps, self.device, self.process = spec, volumes, timesteps, device, process
        self.order = Order(len(volumes), spec.seed)

    def __call__(self, micro_step: int) -> Batch:
        positions = list(self._positions(micro_step))
        self.volumes.read_ahead(map(self.order.volume, self._positions(micro_step + 1)))
        images, conditions, steps, noises = [], [], [], []
        for position in positions:
            image, condition = self.volumes[self.order.volume(position)]
            generator = self.device.generator(derive_seed(self.spec.seed, "noise", position))
            noises.append(offset_noise(image.shape, self.spec.offset_noise, generator))
            steps.append(derive_seed(self.spec.seed, "timestep", position) % self.timesteps)
            images.append(image)
            conditions.append(condition)
        return Batch(
            torch.stack(images).to(self.device.torch, non_blocking=True),
            torch.stack(conditions).to(self.device.torch, non_blocking=True),
            torch.tensor(steps, device=self.device.torch),
            # Where the generators run on the host, the noise does not lie on the device yet.
            torch.stack(noises).to(self.device.torch, non_blocking=True),
            derive_seed(self.spec.seed, "dropout", positions[0]),
        )

    def _positions(self, micro_step: int) -> Iterator[int]:
        return self.order.positions(micro_step, self.spec.batch, self.process.rank, self.process.world)
