"""An optimizer step with this project's fused kernels, which hold weights, average and optimizer themselves."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from genaccel.med_ddpm.schedule import Schedule
from genaccel.spec import SpecError
from genaccel.train.batch import Batch
from genaccel.train.spec import TrainSpec
from genaccel.variant import Variant


class FusedSteps:
    """The same as ``StockSteps``, of one process.

    Args:
        model: the UNet on its device, in FP32; its parameters become views of the kernels' master weights.
        spec: settings.
        switches: the variant.
        schedule: on the model's device.
    """

    def __init__(self, model: nn.Module, spec: TrainSpec, switches: Variant, schedule: Schedule) -> None:
        self.model, self.spec, self.schedule = model, spec, schedule
        # By name: a rule's code hash follows imports, and editing a kernel concerns the variants that use it alone.
        self.fused = importlib.import_module(switches.module).FusedTraining(
            model,
            learning_rate=spec.learning_rate,
            ema_decay=spec.ema.decay,
            ema_start=spec.ema.start,
            ema_interval=spec.ema.interval,
            cuda_graphs=switches.cuda_graphs,
        )

    def __call__(self, batches: Iterable[Batch], number: int) -> Tensor:
        """One optimizer step, the ``number``-th, from its micro-steps; returns their mean loss, on the device."""
        total = torch.zeros((), device=self.schedule.betas.device)
        for batch in batches:
            inputs = torch.cat([self.schedule.q_sample(batch.x0, batch.t, batch.noise), batch.cond], dim=1)
            total += self.fused.accumulate(inputs, batch.t, batch.noise, 1 / self.spec.accumulate)
        self.fused.update()
        return total

    @property
    def average(self) -> dict[str, Tensor]:
        """The averaged weights by the model's names."""
        # Clones, since safetensors refuses views of one array, as the kernels' averages are.
        return {name: value.clone() for name, value in (self.model.state_dict() | self.fused.averages()).items()}

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.fused.state_dict()}

    def restore(self, state: Mapping[str, Any]) -> None:
        if "average" not in state["optimizer"]:
            raise SpecError(
                "the checkpoint is of a training with stock kernels, whose optimizer the fused ones cannot take over; "
                "take train.accept_checkpoint away, or train with the variant that it was written with"
            )
        self.model.load_state_dict(state["model"])
        self.fused.load_state_dict(state["optimizer"])
