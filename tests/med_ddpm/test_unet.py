"""The network's structure, its precision and its errors; parity is in test_golden."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from genaccel.med_ddpm import blocks
from genaccel.med_ddpm.blocks import Attention, GroupNormSiLU, ResidualBlock, step_embedding
from genaccel.med_ddpm.schedule import BUFFERS
from genaccel.med_ddpm.unet import UNet


@pytest.mark.parametrize("name", ["whole_head_128", "brats_192x192x144"])
def test_names_and_shapes_are_those_of_the_published_checkpoint(name, published, published_shapes):
    with torch.device("meta"):
        ours = {key: list(tensor.shape) for key, tensor in UNet(published[name]).state_dict().items()}
    theirs = published_shapes[name]
    assert ours == {key.removeprefix("denoise_fn."): theirs[key] for key in theirs if key not in BUFFERS}


@pytest.mark.parametrize(("downsampling", "levels"), [(0, []), (1, [0]), (4, [2])])
def test_attention_is_in_the_middle_and_at_the_level_asked_for(downsampling, levels, make_spec):
    model = UNet(make_spec(attention_downsampling=downsampling, num_res_blocks=2))
    found = {name for name, module in model.named_modules() if isinstance(module, Attention)}
    blocks_in = {0: (1, 2), 1: (4, 5), 2: (7, 8)}
    blocks_out = {2: (0, 1, 2), 1: (3, 4, 5), 0: (6, 7, 8)}
    expected = {f"input_blocks.{i}.1" for level in levels for i in blocks_in[level]}
    expected |= {f"output_blocks.{i}.1" for level in levels for i in blocks_out[level]}
    assert found == expected | {"middle_block.1"}


def test_an_untrained_network_predicts_no_noise(make_spec):
    predicted = UNet(make_spec())(torch.randn(1, 3, 8, 8, 8), torch.tensor([7]))
    assert torch.count_nonzero(predicted) == 0


@pytest.mark.parametrize("block", [ResidualBlock(32, 16, 32, 0.0), Attention(32)])
def test_an_untrained_block_passes_its_input_on(block):
    x = torch.randn(2, 32, 4, 4, 4)
    inputs = (x, torch.randn(2, 16)) if isinstance(block, ResidualBlock) else (x,)
    assert torch.equal(block(*inputs), x)


@torch.no_grad()
@pytest.mark.parametrize("sides", [(4, 4, 4), (8, 12, 4)])
def test_the_output_has_the_inputs_sides_and_the_images_channels(sides, make_spec):
    model = UNet(make_spec(image=["t1", "t2"]))
    assert model(torch.zeros(2, 4, *sides), torch.tensor([0, 249])).shape == (2, 2, *sides)


@torch.no_grad()
def test_the_prediction_depends_on_the_step(small_unet):
    x = torch.randn(1, 3, 8, 8, 8)
    assert not torch.allclose(small_unet(x, torch.tensor([3])), small_unet(x, torch.tensor([200])))


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        ((1, 3, 8, 10, 8), r"side H = 10 voxels cannot be halved 2 times.*multiple of 4"),
        ((1, 3, 8, 8, 7), r"side W = 7 "),
        ((1, 3, 0, 8, 8), r"side D = 0 "),
        ((1, 2, 8, 8, 8), r"must be \(B, 3, D, H, W\): 1 image and 2 condition channels"),
        ((3, 8, 8, 8), r"has shape \(3, 8, 8, 8\)"),
    ],
)
def test_an_input_of_the_wrong_shape_is_refused_by_name(shape, fault, make_spec):
    with pytest.raises(ValueError, match=fault):
        UNet(make_spec())(torch.zeros(shape), torch.zeros(shape[0], dtype=torch.long))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_gradient_checkpointing_changes_no_gradient(dropout, make_spec):
    model = UNet(make_spec(dropout=dropout, channel_multipliers=[1, 1])).train()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.1)
    x, gradients = torch.randn(1, 3, 4, 4, 4), []
    for model.gradient_checkpointing in (False, True):
        model.zero_grad()
        torch.manual_seed(0)
        model(x, torch.tensor([200])).abs().mean().backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    plain, checkpointed = gradients
    assert all(torch.count_nonzero(gradient) for gradient in plain.values())
    assert all(torch.equal(plain[name], checkpointed[name]) for name in plain)


def test_gradient_checkpointing_keeps_less(make_spec):
    model, x, t = UNet(make_spec()), torch.randn(1, 3, 8, 8, 8), torch.tensor([1])

    def kept(checkpointing: bool) -> int:
        storages: set[int] = set()
        alive = []
        model.gradient_checkpointing = checkpointing

        def keep(tensor):
            alive.append(tensor)
            storages.add(tensor.untyped_storage().data_ptr())
            return tensor

        with saved_tensors_hooks(keep, lambda tensor: tensor):
            model(x, t)
        return len(storages)

    assert kept(True) < kept(False) / 2


@torch.no_grad()
def test_group_norm_is_computed_in_fp32_under_bf16_autocast(make_spec, monkeypatch):
    original, seen = nn.functional.group_norm, []

    def spy(x, groups, weight, bias, eps):
        seen.append((x.dtype, weight.dtype, bias.dtype, groups, eps))
        return original(x, groups, weight, bias, eps)

    monkeypatch.setattr(blocks.F, "group_norm", spy)
    with torch.autocast("cpu", torch.bfloat16):
        predicted = UNet(make_spec())(torch.randn(1, 3, 8, 8, 8), torch.tensor([1]))
    assert set(seen) == {(torch.float32, torch.float32, torch.float32, 32, 1e-5)}
    assert predicted.dtype == torch.bfloat16


def test_group_norm_gives_back_the_dtype_it_got():
    x = torch.randn(1, 32, 2, 2, 2)
    norm = GroupNormSiLU(32)
    lowered = norm(x.bfloat16())
    assert lowered.dtype == torch.bfloat16
    assert torch.allclose(lowered.float(), norm(x), atol=0.05)
    assert norm(x.double()).dtype == torch.float64


def test_the_step_embedding_is_cosines_then_sines_of_the_raw_step():
    embedded = step_embedding(torch.tensor([0, 200]), 8)
    angles = [200 * math.exp(-math.log(1000) * i / 4) for i in range(4)]
    expected = torch.tensor([[1.0] * 4 + [0.0] * 4, [*map(math.cos, angles), *map(math.sin, angles)]])
    assert torch.allclose(embedded, expected, atol=1e-4)


def test_attention_over_4096_voxels_never_stores_all_pairs():
    sizes = []
    with saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()), lambda tensor: tensor):
        Attention(32)(torch.randn(1, 32, 16, 16, 16))
    assert max(sizes) < 4096**2
