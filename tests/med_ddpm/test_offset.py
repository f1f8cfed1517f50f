"""Offset noise."""

import pytest
import torch

from genaccel.med_ddpm.offset import offset_noise


@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_offset_noise_moves_a_whole_channel(offset):
    generator = torch.Generator().manual_seed(0)
    noises = [offset_noise(torch.Size((2, 8, 8, 8)), offset, generator) for _ in range(400)]
    means = torch.stack([noise.mean(dim=(1, 2, 3)) for noise in noises])
    assert means.std() == pytest.approx((offset**2 + 1 / 512) ** 0.5, rel=0.1)
    assert torch.corrcoef(means.T)[0, 1].abs() < 0.2
    assert torch.stack([noise.std() for noise in noises]).mean() == pytest.approx(1, rel=0.2 if offset else 0.01)
