"""Order of each sampler, against the exact probability flow of a Gaussian."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import torch

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.timesteps import noisiest_step

MEAN, DEVIATION = 0.1, 0.2
STARTS = torch.linspace(-2.0, 2.0, 9, dtype=torch.float64).view(1, 1, 1, 1, 9)


@functools.cache
def schedule() -> Schedule:
    """So long that rounding to whole steps does not show."""
    return Schedule(400_000)


def best_noise(x, t):
    """The best prediction for voxels drawn from N(MEAN, DEVIATION^2), in float64."""
    kept = float(schedule().alphas_cumprod_exact[int(t[0])])
    y, ratio2 = x / math.sqrt(kept), (1 - kept) / kept
    return (y - MEAN) * math.sqrt(ratio2) / (DEVIATION**2 + ratio2)


def exact_flow() -> torch.Tensor:
    """Where the flow takes ``STARTS``: the distance of x / signal to the mean shrinks with the total deviation."""
    kept = float(schedule().alphas_cumprod_exact[noisiest_step(schedule())])
    shrink = DEVIATION / math.sqrt(DEVIATION**2 + (1 - kept) / kept)
    return MEAN + shrink * (STARTS / math.sqrt(kept) - MEAN)


def error(sampler: str, steps: int, **options) -> float:
    x = SAMPLERS[sampler](denoise=best_noise, x=STARTS, schedule=schedule(), noise=None, steps=steps, **options)
    assert x.dtype == torch.float64
    return float((x - exact_flow()).abs().max())


def slope(sampler: str, steps: tuple[int, ...], **options) -> float:
    """The power of 1 / steps with which the error falls."""
    return float(-np.polyfit(np.log(steps), np.log([error(sampler, n, **options) for n in steps]), 1)[0])


def test_nothing_of_the_problem_is_clipped():
    assert exact_flow().abs().max() < 0.9


@pytest.mark.parametrize(
    ("sampler", "options", "order"),
    [
        ("ddim", {}, 1),
        ("dpm_solver_pp", {}, 2),
        ("deis", {"order": 1}, 1),
        ("deis", {"order": 2}, 2),
        ("deis", {"order": 3}, 3),
        ("deis", {"order": 4}, 4),
        ("ipndm", {"order": 1}, 1),
        ("ipndm", {"order": 2}, 2),
    ],
)
def test_a_sampler_converges_at_its_order(sampler, options, order):
    assert slope(sampler, (20, 40, 80, 160), **options) == pytest.approx(order, abs=0.3)


def test_ipndm_ends_at_order_two_however_many_predictions_it_takes():
    """Its higher-order terms are exact, but the mean over a step is not; with few steps this hardly shows."""
    assert slope("ipndm", (160, 320, 640), order=4) == pytest.approx(2, abs=0.3)
    assert slope("ipndm", (10, 20, 40), order=4) > 3
    assert slope("ipndm", (10, 20, 40), order=3) > 2.3


@pytest.mark.parametrize("sampler", ["deis", "ipndm"])
@pytest.mark.parametrize("steps", [10, 20, 40])
def test_a_higher_order_is_nearer_to_the_flow(sampler, steps):
    first, second, third = (error(sampler, steps, order=order) for order in (1, 2, 3))
    assert third < second < first


@pytest.mark.parametrize("steps", [10, 20, 40])
def test_dpm_solver_is_nearer_to_the_flow_than_ddim(steps):
    assert error("dpm_solver_pp", steps) < error("ddim", steps)
