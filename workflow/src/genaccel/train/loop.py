"""What one optimizer step of Med-DDPM computes, and all the state that it carries."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from genaccel.device import Device
from genaccel.med_ddpm.offset import offset_noise
from genaccel.med_ddpm.schedule import Schedule
from genaccel.seeds import derive_seed
from genaccel.spec import SpecError
from genaccel.train.ema import EMA
from genaccel.train.order import Order
from genaccel.train.processes import Process
from genaccel.train.spec import TrainSpec
from genaccel.train.volumes import Volumes

FLUSH = 10
"""Steps between readings of the loss: each reading makes the host wait for the device."""


class LossNotFinite(ArithmeticError):
    """The loss turned NaN or infinite; `step` says when."""

    def __init__(self, step: int, loss: float) -> None:
        super().__init__(f"the loss is {loss} at step {step}")
        self.step = step


class Training:
    """Training of a noise predictor with Adam on the L1 loss, with an average of its weights.

    Volumes, diffusion steps and noise are functions of the seed and the position in training, so the state
    is weights, average, optimizer and the number of the step: a resumed run takes the very steps that an
    uninterrupted one takes.

    Args:
        model: the UNet on its device, in FP32; the optimizer and the average stay FP32 in every precision.
        spec: settings.
        volumes: the training split.
        schedule: on the model's device.
        process: which of the processes that train together this is.
    """

    def __init__(
        self, model: nn.Module, spec: TrainSpec, volumes: Volumes, schedule: Schedule, device: Device, process: Process
    ) -> None:
        self.model, self.spec, self.volumes, self.schedule, self.device = model, spec, volumes, schedule, device
        self.process = process
        # Weights that are used as they are need no training volumes.
        self.order = Order(len(volumes), spec.seed) if spec.steps else None
        self.optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        self.ema = EMA(model, spec.ema)
        self.parallel = model
        if process.world > 1:
            # The averaged gradients may live in the buckets of the all-reduce itself: one copy less.
            self.parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.step_number = 0
        self.losses: list[float] = []
        self.rates: list[float] = []
        self._unread: list[Tensor] = []
        self._since = time.perf_counter()

    def step(self) -> None:
        """One optimizer step; its loss stays on the device until ``flush``."""
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device.torch)
        for micro in range(self.spec.accumulate):
            with self._gradients_stay_local(micro + 1 < self.spec.accumulate):
                loss = self._loss(self.step_number * self.spec.accumulate + micro) / self.spec.accumulate
                loss.backward()
            self.device.mark_step()
            total += loss.detach()
        if self.process.world > 1:
            dist.all_reduce(total)
            total /= self.process.world
        self.optimizer.step()
        self.step_number += 1
        self.ema.update(self.model, self.step_number)
        self.device.mark_step()
        self._unread.append(total)

    def _loss(self, micro_step: int) -> Tensor:
        """Mean L1 loss of one micro-step's batch."""
        positions = list(self._positions(micro_step))
        self.volumes.read_ahead(map(self.order.volume, self._positions(micro_step + 1)))
        images, conditions, steps, noises = [], [], [], []
        for position in positions:
            image, condition = self.volumes[self.order.volume(position)]
            generator = self.device.generator(derive_seed(self.spec.seed, "noise", position))
            noises.append(offset_noise(image.shape, self.spec.offset_noise, generator))
            steps.append(derive_seed(self.spec.seed, "timestep", position) % self.schedule.T)
            images.append(image)
            conditions.append(condition)
        # Dropout draws from the default generator.
        self.device.seed(derive_seed(self.spec.seed, "dropout", positions[0]))
        with self.device.autocast(self.spec.precision):
            return self.schedule.training_loss(
                self.parallel,
                torch.stack(images).to(self.device.torch, non_blocking=True),
                torch.stack(conditions).to(self.device.torch, non_blocking=True),
                torch.tensor(steps, device=self.device.torch),
                torch.stack(noises),
            )

    def _positions(self, micro_step: int) -> Iterator[int]:
        return self.order.positions(micro_step, self.spec.batch, self.process.rank, self.process.world)

    def _gradients_stay_local(self, local: bool) -> AbstractContextManager[Any]:
        if local and isinstance(self.parallel, DistributedDataParallel):
            return self.parallel.no_sync()
        return nullcontext()

    def flush(self) -> None:
        """Reads the losses since the last call.

        Raises:
            LossNotFinite: with the first step whose loss is not a number.
        """
        if not self._unread:
            return
        losses = torch.stack(self._unread).tolist()
        seconds = time.perf_counter() - self._since
        volumes = len(losses) * self.spec.batch * self.spec.accumulate * self.process.world
        self._unread, self._since = [], time.perf_counter()
        for loss in losses:
            if not math.isfinite(loss):
                raise LossNotFinite(len(self.losses) + 1, loss)
            self.losses.append(loss)
            self.rates.append(volumes / seconds)

    def state(self) -> dict[str, Any]:
        """All that resuming takes, as tensors and plain values."""
        self.flush()
        return {
            "step": self.step_number,
            "model": self.model.state_dict(),
            "ema": self.ema.weights,
            "optimizer": self.optimizer.state_dict(),
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "rates": torch.tensor(self.rates, dtype=torch.float64),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a state.

        Raises:
            SpecError: it is another network's.
        """
        shapes = {name: value.shape for name, value in self.model.state_dict().items()}
        if {name: value.shape for name, value in state["model"].items()} != shapes:
            raise SpecError(
                "the checkpoint is of another network than models.<name> describes; take train.accept_checkpoint away, "
                "or set the network back"
            )
        self.step_number = state["step"]
        self.model.load_state_dict(state["model"])
        self.ema.load(state["ema"])
        self.optimizer.load_state_dict(state["optimizer"])
        # An accepted checkpoint may be of another rate; the optimizer's state would bring that back.
        for group in self.optimizer.param_groups:
            group["lr"] = self.spec.learning_rate
        self.losses, self.rates = state["losses"].tolist(), state["rates"].tolist()
        self._since = time.perf_counter()
