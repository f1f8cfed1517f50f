"""The order of training volumes as a function of position, so that there is no state to lose."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from genaccel.seeds import derive_seed


@dataclass(frozen=True)
class Order:
    """Endless passes over ``n`` volumes, each in its own seeded permutation.

    Position ``p`` counts volumes over all devices since the start, so that one device with a batch of
    four and two devices with a batch of two see the same volumes, steps of the diffusion and noise.

    Args:
        n: volumes of the training split; at least 1, else ValueError.
        seed: ``train.seed``.
    """

    n: int
    seed: int

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError("the training split is empty; raise data.<name>.split.train, or add subjects")

    def volume(self, position: int) -> int:
        """Index of the volume at a position."""
        epoch, place = divmod(position, self.n)
        return _permutation(self.n, derive_seed(self.seed, "order", epoch))[place]

    def positions(self, micro_step: int, batch: int, rank: int, world: int) -> Iterator[int]:
        """Positions of one device's batch in one micro-step."""
        start = (micro_step * world + rank) * batch
        return iter(range(start, start + batch))


@functools.lru_cache(maxsize=2)
def _permutation(n: int, seed: int) -> list[int]:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()
