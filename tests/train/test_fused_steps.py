"""The loop around the fused kernels, which fall back to plain PyTorch on a CPU."""

from __future__ import annotations

import pytest
import torch

from genaccel.device import open_device
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.unet import UNet
from genaccel.med_ddpm.weights import load_weights, save_weights
from genaccel.spec import SpecError
from genaccel.train.loop import Training
from genaccel.train.processes import Process
from genaccel.train.volumes import Volumes
from genaccel.variants import VARIANTS


@pytest.fixture
def training(job, tiny_model, manifest):
    """A training that has just begun, of a variant."""
    plain = tiny_model.model_copy(update={"dropout": 0.0})

    def build(variant: str, **settings) -> Training:
        torch.manual_seed(0)
        spec = job(variant="fp32_strict", learning_rate=1e-3, **settings).train
        volumes = Volumes(manifest, "train", plain)
        device = open_device("cpu", threads=1)
        return Training(UNet(plain), spec, VARIANTS[variant], volumes, Schedule(plain.timesteps), device, Process())

    return build


def take(training: Training, steps: int) -> Training:
    for _ in range(steps):
        training.step()
    training.flush()
    return training


@pytest.mark.parametrize("accumulate", [1, 2])
def test_fused_steps_train_as_stock_ones_do_within_bf16(training, accumulate):
    fused, stock = (take(training(name, accumulate=accumulate), 5) for name in ("fast", "fp32_strict"))
    assert fused.losses == pytest.approx(stock.losses, rel=2e-2)
    assert fused.average.keys() == stock.average.keys()
    assert {value.dtype for value in fused.average.values()} == {torch.float32}


def test_the_average_is_written_as_any_other(training, tiny_model, tmp_path):
    fused = take(training("fast"), 1)
    save_weights(tmp_path / "weights.safetensors", fused.average, {})
    read = load_weights(tmp_path / "weights.safetensors", tiny_model)
    assert all(torch.equal(read[name], value) for name, value in fused.average.items())


def test_a_restored_state_takes_the_very_steps_of_an_uninterrupted_training(training):
    whole = take(training("fast"), 5)
    state = take(training("fast"), 3).state()
    resumed = training("fast")
    resumed.restore(state)
    take(resumed, 2)
    assert resumed.losses == whole.losses
    for name, value in whole.average.items():
        assert torch.equal(resumed.average[name], value), name


@pytest.mark.parametrize(("one", "other"), [("fast", "fp32_strict"), ("fp32_strict", "fast")])
def test_a_checkpoint_of_the_other_kind_of_kernels_is_refused(training, one, other):
    with pytest.raises(SpecError, match="train with the variant that it was written with"):
        training(other).restore(take(training(one), 1).state())
