"""Training of Med-DDPM's noise predictor: its steps in order, their losses, and all the state that they carry."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor, nn

from genaccel.device import Device
from genaccel.med_ddpm.schedule import Schedule
from genaccel.spec import SpecError
from genaccel.train.batch import Batches
from genaccel.train.fused import FusedSteps
from genaccel.train.processes import Process
from genaccel.train.spec import TrainSpec
from genaccel.train.stock import StockSteps
from genaccel.train.volumes import Volumes
from genaccel.variant import Variant

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
        model: the UNet on its device, in FP32; the optimizer and the average stay FP32 in every variant.
        spec: settings.
        switches: the variant; ``device.apply`` was called with it.
        volumes: the training split.
        schedule: on the model's device.
        process: which of the processes that train together this is.
    """

    def __init__(
        self,
        model: nn.Module,
        spec: TrainSpec,
        switches: Variant,
        volumes: Volumes,
        schedule: Schedule,
        device: Device,
        process: Process,
    ) -> None:
        self.model, self.spec, self.volumes, self.device, self.process = model, spec, volumes, device, process
        self.steps: StockSteps | FusedSteps
        if switches.kernels == "fused":
            self.steps = FusedSteps(model, spec, switches, schedule)
        else:
            self.steps = StockSteps(model, spec, switches, schedule, device, process)
        # Weights that are used as they are need no training volumes.
        self.batches = Batches(spec, volumes, schedule.T, device, process) if spec.steps else None
        self.step_number = 0
        self.losses: list[float] = []
        self.rates: list[float] = []
        self._unread: list[Tensor] = []
        self._since = time.perf_counter()

    @property
    def average(self) -> dict[str, Tensor]:
        """The averaged weights, FP32."""
        return self.steps.average

    def step(self) -> None:
        """One optimizer step; its loss stays on the device until ``flush``."""
        first = self.step_number * self.spec.accumulate
        self.step_number += 1
        micro_steps = range(first, first + self.spec.accumulate)
        self._unread.append(self.steps((self.batches(micro) for micro in micro_steps), self.step_number))

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
            **self.steps.state(),
            "step": self.step_number,
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
        self.steps.restore(state)
        self.losses, self.rates = state["losses"].tolist(), state["rates"].tolist()
        self._since = time.perf_counter()
