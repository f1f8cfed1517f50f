"""Smoothed losses of trainings that differ in seed and variant, and how far variants lie apart beside the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

WINDOW = 50
"""Steps of the running mean: a single step's loss is mostly its random diffusion step."""


def smoothed(losses: ArrayLike, window: int = WINDOW) -> NDArray[np.float64]:
    """Running mean of the last ``window`` losses, (n,) -> (n - window + 1,), of all where there are fewer."""
    values = np.asarray(losses, dtype=np.float64)
    window = min(window, len(values))
    return np.convolve(values, np.full(window, 1 / window), mode="valid")


class Apart(NamedTuple):
    """How far a variant's losses lie from the baseline's.

    Attributes:
        by_seed: mean over the steps of the smoothed difference, one a seed: equal batches, steps and noise.
        mean: of these.
        seed_range: mean over the steps of the largest less the smallest smoothed loss of the baseline's seeds.
    """

    by_seed: tuple[float, ...]
    mean: float
    seed_range: float

    @property
    def within(self) -> bool:
        """Whether another seed would have changed more."""
        return abs(self.mean) <= self.seed_range


def apart(
    variant: Mapping[int, Sequence[float]], baseline: Mapping[int, Sequence[float]], window: int = WINDOW
) -> Apart:
    """Compares losses, by seed and step.

    Raises:
        ValueError: other seeds on the two sides, fewer than two, or other numbers of steps.
    """
    if variant.keys() != baseline.keys() or len(baseline) < 2:
        raise ValueError(
            f"curves are paired by seed, with two seeds at least; there are {sorted(variant)} and {sorted(baseline)}"
        )
    steps = {len(losses) for side in (variant, baseline) for losses in side.values()}
    if len(steps) > 1:
        raise ValueError(f"curves are of equal length; there are {sorted(steps)} steps")
    seeds = sorted(baseline)
    ours, theirs = (np.stack([smoothed(side[seed], window) for seed in seeds]) for side in (variant, baseline))
    by_seed = (ours - theirs).mean(axis=1)
    return Apart(tuple(by_seed.tolist()), float(by_seed.mean()), float(np.ptp(theirs, axis=0).mean()))
