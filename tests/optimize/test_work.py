"""FLOPs, bytes and widths against counts by hand."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.optimize.work import LIMIT, Work, step_work, too_wide, widest
from genaccel.optimize.workload import seeded_network
from genaccel.variants import VARIANTS

WHOLE_HEAD = MedDDPMSpec(
    shape=(128, 128, 128),
    image=("t1",),
    condition=("brain", "tumour"),
    base_channels=64,
    channel_multipliers=(1, 1, 2, 3, 4),
    attention_downsampling=None,
)


def by_hand(voxels: int) -> tuple[int, int]:
    """FLOPs and elements of the tests' network of one level, batch 1: every convolution and matrix product."""
    flops = elements = 0

    def product(inner, outer, kernel, positions):
        nonlocal flops, elements
        flops += 2 * positions * kernel * inner * outer
        elements += positions * (inner + outer) + inner * outer * kernel + outer

    width, embedding = 32, 128
    product(width, embedding, 1, 1)  # step embedding
    product(embedding, embedding, 1, 1)
    product(3, width, 27, voxels)
    for channels in (width, width, width, 2 * width, 2 * width):  # one block, two in the middle, two at the end
        product(channels, width, 27, voxels)
        product(embedding, width, 1, 1)
        product(width, width, 27, voxels)
        if channels != width:
            product(channels, width, 1, voxels)
    product(width, 3 * width, 1, voxels)  # attention
    product(width, width, 1, voxels)
    flops += 2 * (2 * voxels * voxels * width)
    elements += 2 * (2 * voxels * width + voxels * voxels)
    product(width, 1, 27, voxels)
    return flops, elements


def test_a_denoising_step_is_counted_as_by_hand(model):
    assert step_work(model, (4, 4, 4), 1, "denoise") == Work(*by_hand(64))


def test_pytorch_s_own_counter_agrees_on_a_real_step(model):
    network, inputs = seeded_network(model, 0), torch.randn(2, 3, 4, 6, 8)
    # A CPU's fused attention is not in its table.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counted:
        network(inputs, torch.tensor([1, 2])).sum().backward()
    assert step_work(model, (4, 6, 8), 2, "train").flops == pytest.approx(counted.get_total_flops(), rel=1e-3)


def test_work_grows_with_the_batch_and_training_is_three_passes_less_the_volumes_gradient(model):
    one, two = (step_work(model, (4, 4, 4), batch, "denoise").flops for batch in (1, 2))
    assert two == 2 * one
    first = 2 * 64 * 27 * 3 * 32
    embedding = 2 * 32 * 128
    assert step_work(model, (4, 4, 4), 1, "train").flops == 3 * one - first - embedding


@pytest.mark.parametrize(("variant", "size"), [("fp32_strict", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fast", 2)])
def test_elements_count_with_the_size_of_the_arithmetic(variant, size):
    assert Work(flops=1, elements=10).bytes_moved(VARIANTS[variant]) == 10 * size


def test_the_published_network_needs_what_was_measured_on_it():
    assert step_work(WHOLE_HEAD, (128, 128, 128), 1, "denoise").flops == pytest.approx(5.54e12, rel=1e-2)


def test_the_widest_tensor_is_where_the_skip_is_concatenated():
    tensor = widest(WHOLE_HEAD, (128, 128, 128), 1)
    assert tensor.shape == (1, 128, 128, 128, 128)
    assert tensor.layer.startswith("output_blocks.")


@pytest.mark.parametrize(("side", "batch", "refused"), [(128, 7, False), (128, 8, True), (256, 1, True)])
def test_two_to_the_31_elements_in_one_convolution_are_refused_with_the_tensor(side, batch, refused):
    reason = too_wide(WHOLE_HEAD, (side, side, side), batch)
    assert bool(reason) is refused
    if refused:
        assert "the convolution output_blocks." in reason
        assert f"[{batch}, 128, {side}, {side}, {side}], {batch * 128 * side**3} elements" in reason
        assert str(LIMIT) in reason
