"""The fixed work: the same for every variant, and none of it idle."""

from __future__ import annotations

import pytest
import torch

from genaccel.optimize.error import relative_error
from genaccel.optimize.workload import Workload, phantom, seeded_network
from genaccel.variants import VARIANTS

CHANNELS_LAST = VARIANTS["fp32_strict"].model_copy(update={"memory_format": "channels_last"})


@pytest.fixture
def workload(model, cpu):
    def make(variant=VARIANTS["fp32_strict"], size=(4, 4, 4), batch=2, seed=0):
        cpu.apply(variant)
        return Workload(model, variant, cpu, size, batch, seed)

    return make


def test_no_parameter_is_zero_and_the_seed_alone_decides_them(model):
    before = torch.get_rng_state()
    first, second, other = seeded_network(model, 0), seeded_network(model, 0), seeded_network(model, 1)
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.state_dict().items():
        assert value.count_nonzero() == value.numel(), name
        assert torch.equal(value, second.state_dict()[name])
        assert not torch.equal(value, other.state_dict()[name])


def test_the_prediction_has_a_sensible_scale(workload):
    assert 0.1 < workload().denoise()().std() < 1


def test_phantoms_are_volumes_with_masks():
    images, masks = phantom(2, 3, (8, 16, 8), batch=2, seed=0)
    assert images.shape == (2, 2, 8, 16, 8)
    assert images.abs().max() <= 1
    assert masks.shape == (2, 3, 8, 16, 8)
    assert set(masks.unique().tolist()) == {-1.0, 1.0}


def test_inputs_depend_on_the_seed_alone(workload):
    t = torch.tensor([3, 3])
    assert torch.equal(workload().inputs(t), workload(variant=VARIANTS["bf16"]).inputs(t))
    assert not torch.equal(workload().inputs(t), workload(seed=1).inputs(t))


@pytest.mark.parametrize(
    ("variant", "error"), [(CHANNELS_LAST, 1e-5), (VARIANTS["bf16"], 3e-2), (VARIANTS["bf16_channels_last"], 3e-2)]
)
def test_a_variant_predicts_what_strict_fp32_predicts(workload, variant, error):
    reference = workload().predictions([5])[5]
    found = workload(variant).predictions([5])[5]
    assert found.dtype == torch.float32
    assert relative_error(found, reference) < error


def test_a_prediction_is_not_overwritten_by_the_next(workload):
    step = workload().denoise()
    first = step()
    kept = first.clone()
    step()
    assert torch.equal(first, kept)


@pytest.mark.parametrize("variant", [VARIANTS["fp32_strict"], CHANNELS_LAST, VARIANTS["bf16"]])
def test_training_steps_lower_the_loss_and_keep_weights_in_fp32(workload, variant):
    step = workload(variant).train()
    losses = [step() for _ in range(3)]
    assert losses[-1] < losses[0]
    assert all(loss.shape == () and not loss.requires_grad for loss in losses)


@pytest.mark.parametrize(("sampler", "steps"), [("ddpm", 10), ("ddim", 2), ("dpm_solver_pp", 3)])
def test_a_volume_is_sampled_whole_and_the_same_each_time(workload, sampler, steps):
    volume = workload().volume(sampler, steps)
    first = volume()
    assert first.shape == (2, 1, 4, 4, 4)
    assert first.abs().max() <= 1
    assert torch.equal(first, volume())


def test_one_network_serves_all_of_sampling_until_it_is_released(workload):
    work = workload()
    network = work.network()
    assert work.network() is network
    work.release()
    assert work.network() is not network


def test_sizes_that_are_no_cubes_are_taken_along_the_tensor_s_axes(workload):
    assert workload(size=(4, 8, 6), batch=1).denoise()().shape == (1, 1, 4, 8, 6)
