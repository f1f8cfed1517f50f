import pytest
import torch
import torch.nn.functional as F

from genaccel.med_ddpm.fast import group_norm as gn

CASES = [
    # batch, voxels, channels of the sources, groups: fewer voxels than a tile, tiles cut off, a group that takes
    # channels of both sources, channel counts that are no power of two
    (1, 27, (16,), 16),
    (2, 130, (24,), 3),
    (1, 70, (64, 32), 8),
    (2, 65, (80, 16), 4),
]


@pytest.mark.parametrize(("batch", "voxels", "widths", "groups"), CASES)
@pytest.mark.parametrize("silu", [True, False])
def test_forward_and_backward_are_those_of_fp64(device, error, batch, voxels, widths, groups, silu):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator).to(device)

    channels = sum(widths)
    sources = [3 * normal(batch, voxels, width) + 5 for width in widths]
    weight, bias, shift, dy = (
        normal(channels),
        normal(channels),
        normal(batch, channels),
        normal(batch, voxels, channels),
    )
    extra = [normal(batch, voxels, widths[0]) for _ in range(2)]
    into, kernel = normal(batch, voxels, 24), normal(24, channels)

    moments = [gn.moments(source) for source in sources]
    c = gn.coefficients(moments, voxels, weight, bias, groups, shift)
    y, normalised, sums = torch.empty_like(dy), torch.full_like(dy, torch.nan), gn.empty_sums(dy)
    starts = [sum(widths[:i]) for i in range(len(widths))]
    for source, start in zip(sources, starts, strict=True):
        gn.normalise(source, c, y, start, silu)
        gn.backward_sums(dy, source, c, start, sums, normalised, silu)
    g = gn.backward_coefficients(sums, moments, voxels, c, weight, groups)
    plain = [gn.backward_apply(dy, s, c, g, start, silu=silu) for s, start in zip(sources, starts, strict=True)]
    added = gn.backward_apply(dy, sources[0], c, g, 0, extra, silu=silu)
    projected = gn.backward_apply(dy, sources[-1], c, g, starts[-1], projected=(into, kernel), silu=silu)

    exact = [s.double().requires_grad_() for s in sources]
    w, b, h = (value.double().requires_grad_() for value in (weight, bias, shift))
    whole = torch.cat(exact, -1) + h[:, None]
    z = F.group_norm(whole.transpose(1, 2), groups, w, b, gn.EPS).transpose(1, 2)
    reference = F.silu(z) if silu else z
    reference.backward(dy.double())

    assert error(y, reference) < 2e-6
    assert error(normalised, reference) < 2e-6
    for mine, source in zip(plain, exact, strict=True):
        assert error(mine, source.grad) < 1e-5
    assert error(added, exact[0].grad + extra[0] + extra[1]) < 1e-5
    assert error(projected, exact[-1].grad + (into.double() @ kernel.double())[:, :, starts[-1] :]) < 1e-5
    assert error(g.weight.sum(0), w.grad) < 1e-5
    assert error(g.bias.sum(0), b.grad) < 1e-5
    # With a group for each channel a constant changes nothing, and what is left of its gradient is rounding.
    scale = torch.cat([source.grad.abs().sum(1) for source in exact], -1)
    assert ((g.shift - h.grad).abs() <= 1e-5 * scale).all()


def test_a_bias_is_added_in_place_before_the_moments(device, error):
    x, bias = torch.randn(1, 100, 32, device=device), torch.randn(32, device=device)
    biased = x + bias
    merged = gn._merged([gn.moments(x, bias)], 100)
    assert torch.equal(x, biased)
    assert error(merged[0], biased.double().mean(1)) < 1e-6
    assert error(merged[1], biased.double().var(1, correction=0) * 100) < 1e-6


def test_a_small_spread_about_a_large_mean_is_not_lost(device, error):
    x = 1000 + torch.randn(1, 300, 32, device=device, dtype=torch.float32)
    squares = gn._merged([gn.moments(x)], 300)[1]
    assert error(squares, x.double().var(1, correction=0) * 300) < 1e-4
