"""The predicted peak of memory, against measurements and against another way to count."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from genaccel.med_ddpm.memory import denoising_memory, training_memory
from genaccel.med_ddpm.schedule import Schedule
from genaccel.med_ddpm.unet import UNet

GIB = 2**30


# torch.cuda.max_memory_allocated over one step of this network with Adam and EMA: GiB, H200, torch 2.11.0+cu130.
MEASURED = [
    ("whole_head_128", "fp32", False, 18.69),
    ("whole_head_128", "tf32", False, 18.68),
    ("whole_head_128", "bf16", False, 13.62),
    ("whole_head_128", "fp32", True, 10.94),
    ("whole_head_128", "bf16", True, 6.83),
    ("brats_192x192x144", "bf16", False, 50.08),
    ("brats_192x192x144", "bf16", True, 18.91),
]


@pytest.mark.parametrize(("name", "precision", "checkpointing", "measured"), MEASURED)
def test_a_training_step_needs_what_was_measured(name, precision, checkpointing, measured, published):
    predicted = training_memory(published[name], 1, precision, checkpointing).total / GIB
    assert predicted == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize(("precision", "measured"), [("fp32", 4.02), ("tf32", 4.52), ("bf16", 3.10)])
def test_a_denoising_step_needs_what_was_measured(precision, measured, published):
    # Measured above weights and inputs, on the same device.
    predicted = denoising_memory(published["whole_head_128"], 1, precision).transient / GIB
    assert predicted == pytest.approx(measured, rel=0.01)


def test_the_published_code_which_stores_attentions_matrix_needs_little_more(published):
    assert training_memory(published["whole_head_128"], 1).total / GIB == pytest.approx(19.1, rel=0.03)


def test_parameters_are_counted_by_their_number(published):
    with torch.device("meta"):
        model = UNet(published["whole_head_128"])
    size = 4 * sum(parameter.numel() for parameter in model.parameters())
    memory = training_memory(published["whole_head_128"], batch=1)
    assert (memory.weights, memory.gradients, memory.optimizer, memory.ema) == (size, size, 2 * size, size)


def kept_for_backward(spec, batch: int) -> int:
    """Bytes of the distinct storages that a real forward pass on the CPU saves, without parameters."""
    model, schedule = UNet(spec), Schedule(spec.timesteps)
    sides = spec.tensor_shape
    x0, cond = torch.randn(batch, len(spec.image), *sides), torch.ones(batch, len(spec.condition), *sides)
    t, noise = torch.zeros(batch, dtype=torch.long), torch.randn_like(x0)
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, torch.UntypedStorage] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = schedule.training_loss(model, x0, cond, t, noise)
        size = sum(storage.nbytes() for pointer, storage in saved.items() if pointer not in parameters)
    del loss
    return size + x0.nbytes + cond.nbytes


@pytest.mark.parametrize("batch", [1, 2])
def test_activations_are_what_a_real_forward_pass_saves(batch, make_spec):
    spec = make_spec(shape=[16, 16, 16])
    assert training_memory(spec, batch).activations == pytest.approx(kept_for_backward(spec, batch), rel=0.02)


def test_activations_grow_with_the_batch(make_spec):
    one, four = (training_memory(make_spec(), batch) for batch in (1, 4))
    assert four.activations == pytest.approx(4 * one.activations, rel=0.02)
    assert four.weights == one.weights


def test_bf16_and_checkpointing_each_save_activations(make_spec):
    spec = make_spec(shape=[32, 32, 32])
    plain = training_memory(spec, 1)
    lowered = training_memory(spec, 1, "bf16")
    checkpointed = training_memory(spec, 1, gradient_checkpointing=True)
    both = training_memory(spec, 1, "bf16", gradient_checkpointing=True)
    assert lowered.activations < 0.8 * plain.activations
    assert checkpointed.activations < 0.5 * plain.activations
    assert both.total < min(lowered.total, checkpointed.total)


def test_attention_costs_no_matrix_of_all_pairs(make_spec):
    # 32,768 voxels attend to each other: their FP32 matrix alone would be 4 GiB.
    spec = make_spec(shape=[32, 32, 32], attention_downsampling=1)
    assert training_memory(spec, 1).total < GIB


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_denoising_needs_less_than_training(precision, make_spec):
    spec = make_spec(shape=[16, 16, 16])
    denoising = denoising_memory(spec, 1, precision)
    assert denoising.total < training_memory(spec, 1, precision).total / 2
    assert (denoising.gradients, denoising.optimizer, denoising.ema) == (0, 0, 0)
