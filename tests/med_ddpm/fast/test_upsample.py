import pytest
import torch
import torch.nn.functional as F

from genaccel.med_ddpm.fast.upsample import upsample, upsample_backward


@pytest.mark.parametrize(("batch", "sides", "channels"), [(1, (1, 2, 3), 16), (2, (2, 3, 1), 24)])
def test_both_directions_are_those_of_fp64(device, error, batch, sides, channels):
    voxels = sides[0] * sides[1] * sides[2]
    x, dy = torch.randn(batch, voxels, channels, device=device), torch.randn(batch, 8 * voxels, channels, device=device)
    exact = x.double().transpose(1, 2).unflatten(-1, sides).requires_grad_()
    reference = F.interpolate(exact, scale_factor=2, mode="trilinear", align_corners=False)
    reference.backward(dy.double().transpose(1, 2).unflatten(-1, [2 * side for side in sides]))
    assert error(upsample(x, sides), reference.flatten(2).transpose(1, 2)) < 1e-6
    assert error(upsample_backward(dy, sides), exact.grad.flatten(2).transpose(1, 2)) < 1e-6
