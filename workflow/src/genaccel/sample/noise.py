"""Noise that belongs to a volume, whatever batch or device it is sampled on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from genaccel.seeds import derive_seed


class VolumeNoise:
    """Standard normal noise for a batch, each volume from a generator of its own.

    The generators run on the host: its numbers are the same on every accelerator, so volumes of two devices
    differ by arithmetic alone.

    Args:
        seeds: one a volume, as ``volume_seed`` gives them.
        shape: of one volume, (C, D, H, W).
        device: where the noise goes.
    """

    def __init__(self, seeds: Sequence[int], shape: Sequence[int], device: torch.device) -> None:
        self.shape, self.device = tuple(shape), device
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self) -> Tensor:
        """(B, C, D, H, W), fresh at every call."""
        return torch.stack([torch.randn(self.shape, generator=g) for g in self._generators]).to(self.device)


def volume_seed(seed: int, subject: str, sample: int) -> int:
    """The seed of one volume: its subject and number decide, not its place in a batch."""
    return derive_seed(seed, "sample", subject, sample)
