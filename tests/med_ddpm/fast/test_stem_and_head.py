import pytest
import torch
import torch.nn.functional as F

from genaccel.med_ddpm.fast import group_norm as gn
from genaccel.med_ddpm.fast import head as head_module
from genaccel.med_ddpm.fast.stem import stem, stem_backward

SIDES = (3, 5, 4)
VOXELS = 60


def as_5d(rows, channels):
    """(C, 27 K) -> (C, K, 3, 3, 3)."""
    return rows.unflatten(1, (3, 3, 3, channels)).permute(0, 4, 1, 2, 3)


@pytest.mark.parametrize(("batch", "channels", "width"), [(2, 3, 32), (1, 8, 48)])
def test_the_first_convolution_is_that_of_fp64(device, error, batch, channels, width):
    x = torch.randn(batch, channels, *SIDES, device=device)
    kernel, bias = torch.randn(width, 27 * channels, device=device), torch.randn(width, device=device)
    dy = torch.randn(batch, VOXELS, width, device=device)
    y, moments = stem(x, kernel, bias)
    exact = as_5d(kernel.double(), channels).requires_grad_()
    reference = F.conv3d(x.double(), exact, bias.double(), padding=1)
    reference.backward(dy.double().transpose(1, 2).unflatten(-1, SIDES))
    assert error(y, reference.flatten(2).transpose(1, 2)) < 1e-6
    assert error(gn._merged([moments], VOXELS)[0], reference.mean((2, 3, 4))) < 1e-6
    assert error(as_5d(stem_backward(x, dy), channels), exact.grad) < 1e-6


@pytest.mark.parametrize(("batch", "channels", "outputs"), [(2, 32, 1), (1, 48, 3), (1, 96, 4)])
def test_the_last_norm_and_convolution_are_those_of_fp64(device, error, batch, channels, outputs):
    x, kernel = torch.randn(batch, VOXELS, channels, device=device), torch.randn(27, outputs, channels, device=device)
    weight, shift = torch.randn(channels, device=device), torch.randn(channels, device=device)
    bias, dy = torch.randn(outputs, device=device), torch.randn(batch, outputs, *SIDES, device=device)
    moments = [gn.moments(x)]
    c = gn.coefficients(moments, VOXELS, weight, shift, 4)
    y = head_module.head(x, SIDES, c, kernel, bias)
    near = head_module.near_gradient(dy, x.dtype)
    sums, d_kernel = head_module.head_backward_sums(near, x, c, kernel)
    g = gn.backward_coefficients(sums, moments, VOXELS, c, weight, 4)
    dx = head_module.head_backward_apply(near, x, c, g, kernel)

    exact, w, b, k = (value.double().requires_grad_() for value in (x, weight, shift, kernel))
    n = F.silu(F.group_norm(exact.transpose(1, 2), 4, w, b, gn.EPS)).unflatten(-1, SIDES)
    reference = F.conv3d(n, head_module.as_5d(k), bias.double(), padding=1)
    reference.backward(dy.double())
    assert error(y, reference) < 2e-6
    assert error(d_kernel, k.grad) < 1e-5
    assert error(g.weight.sum(0), w.grad) < 1e-5
    assert error(g.bias.sum(0), b.grad) < 1e-5
    assert error(dx, exact.grad) < 1e-5
