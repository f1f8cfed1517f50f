import pytest
import torch

from genaccel.med_ddpm.fast import group_norm as gn
from genaccel.med_ddpm.fast.residual import residual_add, residual_project


def check(error, result, moments, reference):
    assert error(result, reference) < 2e-6
    mean, squares = gn._merged([moments], result.shape[1])
    assert error(mean, reference.mean(1)) < 2e-6
    assert error(squares, reference.var(1, correction=0) * result.shape[1]) < 2e-6


@pytest.mark.parametrize(("batch", "voxels", "channels"), [(1, 27, 32), (2, 130, 48)])
def test_a_skip_is_added(device, error, batch, voxels, channels):
    h, x = torch.randn(2, batch, voxels, channels, device=device).unbind()
    bias = torch.randn(channels, device=device)
    reference = h.double() + bias.double() + x.double()
    check(error, *residual_add(h, bias, x), reference)


@pytest.mark.parametrize(("voxels", "channels", "widths"), [(70, 32, (48,)), (130, 48, (64, 32)), (27, 96, (16, 80))])
def test_a_skip_is_projected_from_one_volume_or_two(device, error, voxels, channels, widths):
    h = torch.randn(2, voxels, channels, device=device)
    sources = [torch.randn(2, voxels, width, device=device) for width in widths]
    bias, kernel = torch.randn(channels, device=device), torch.randn(channels, sum(widths), device=device)
    reference = h.double() + bias.double() + torch.cat(sources, -1).double() @ kernel.double().T
    check(error, *residual_project(h, bias, sources, kernel), reference)
