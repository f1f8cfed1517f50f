"""An optimizer step with PyTorch's own modules: autocast, loss scaling, Adam, several processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from genaccel.device import Device
from genaccel.med_ddpm.network import FORMATS, training_network
from genaccel.med_ddpm.schedule import Schedule
from genaccel.spec import SpecError
from genaccel.train.batch import Batch
from genaccel.train.ema import EMA
from genaccel.train.processes import Process
from genaccel.train.spec import TrainSpec
from genaccel.variant import Variant


class StockSteps:
    """Adam on the L1 loss, with an average of the weights.

    Args:
        model: the UNet on its device, in FP32; the optimizer and the average stay FP32 in every variant.
        spec: settings.
        switches: the variant; ``device.apply`` was called with it.
        schedule: on the model's device.
        process: which of the processes that train together this is.
    """

    def __init__(
        self,
        model: nn.Module,
        spec: TrainSpec,
        switches: Variant,
        schedule: Schedule,
        device: Device,
        process: Process,
    ) -> None:
        self.model, self.spec, self.switches = model, spec, switches
        self.schedule, self.device, self.process = schedule, device, process
        # Before the optimizer and the average take the weights, so that theirs are laid out alike.
        model.to(memory_format=FORMATS[switches.memory_format])
        self.optimizer = torch.optim.Adam(model.parameters(), lr=spec.learning_rate)
        self.scaler = torch.amp.GradScaler(device.torch.type, enabled=switches.grad_scaler)
        self.ema = EMA(model, spec.ema)
        self.parallel = model
        if process.world > 1:
            # The averaged gradients may live in the buckets of the all-reduce itself: one copy less.
            self.parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
        self.network = training_network(self.parallel, switches)

    def __call__(self, batches: Iterable[Batch], number: int) -> Tensor:
        """One optimizer step, the ``number``-th, from its micro-steps; returns their mean loss, on the device."""
        self.optimizer.zero_grad(set_to_none=True)
        total = torch.zeros((), device=self.device.torch)
        for micro, batch in enumerate(batches, start=1):
            with self._gradients_stay_local(micro < self.spec.accumulate):
                loss = self._loss(batch) / self.spec.accumulate
                self.scaler.scale(loss).backward()
            self.device.mark_step()
            total += loss.detach()
        if self.process.world > 1:
            dist.all_reduce(total)
            total /= self.process.world
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.ema.update(self.model, number)
        self.device.mark_step()
        return total

    def _loss(self, batch: Batch) -> Tensor:
        # Dropout draws from the default generator.
        self.device.seed(batch.dropout)
        with self.device.autocast(self.switches.autocast):
            return self.schedule.training_loss(self.network, batch.x0, batch.cond, batch.t, batch.noise)

    def _gradients_stay_local(self, local: bool) -> AbstractContextManager[Any]:
        if local and isinstance(self.parallel, DistributedDataParallel):
            return self.parallel.no_sync()
        return nullcontext()

    @property
    def average(self) -> dict[str, Tensor]:
        """The averaged weights by the model's names."""
        return self.ema.weights

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model.state_dict(),
            "ema": self.ema.weights,
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        if "ema" not in state:
            raise SpecError(
                "the checkpoint is of a training with fused kernels, whose optimizer PyTorch's cannot take over; take "
                "train.accept_checkpoint away, or train with the variant that it was written with"
            )
        self.model.load_state_dict(state["model"])
        self.ema.load(state["ema"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        # An accepted checkpoint may be of another rate; the optimizer's state would bring that back.
        for group in self.optimizer.param_groups:
            group["lr"] = self.spec.learning_rate
