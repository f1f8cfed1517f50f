"""Operations of a step, against PyTorch's own counter and the measurements' table."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from genaccel.flops import Counter
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.unet import UNet
from genaccel.plan.work import step_work
from genaccel.resources import read_resource


def test_a_forward_pass_of_the_published_network_takes_what_was_counted_elsewhere(paper):
    assert step_work(paper["whole_head"], "denoise").flops == pytest.approx(5.54e12, rel=0.01)


@pytest.mark.parametrize("gradient_checkpointing", [False, True])
def test_a_training_step_takes_what_pytorch_counts(paper, gradient_checkpointing):
    spec = paper["whole_head"].model_copy(update={"shape": (32, 32, 32)})
    with torch.device("meta"):
        model = UNet(spec, gradient_checkpointing)
        x, noise, condition = (torch.empty(1, channels, 32, 32, 32) for channels in (1, 1, 2))
        t = torch.empty(1, dtype=torch.long)
    schedule = Schedule(spec.timesteps).to("meta")
    with FlopCounterMode(display=False) as flops:
        schedule.training_loss(model, x, condition, t, noise).backward()
    model.zero_grad()
    with Counter() as counted:
        schedule.training_loss(model, x, condition, t, noise).backward()
    work = step_work(spec, "train", gradient_checkpointing)
    assert counted.flops == flops.get_total_flops()
    assert work.flops == pytest.approx(counted.flops, rel=0.02)
    assert work.operations == pytest.approx(counted.operations, rel=0.15)


@pytest.mark.parametrize("row", read_resource("measured_steps.csv"), ids=lambda row: f"{row['step']}-{row['shape']}")
def test_the_table_of_measured_steps_holds_the_operations_of_its_networks(row, at_size):
    work = step_work(at_size(row["network"], row["shape"]), row["step"])
    assert float(row["tflop"]) * 1e12 == pytest.approx(int(row["batch"]) * work.flops, rel=0.01)
