"""Solves the probability flow in several steps at once: earlier predictions of the noise bend the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from torch import Tensor

from genaccel.med_ddpm.schedule import Schedule
from genaccel.sample.samplers._levels import Level, levels, predict
from genaccel.sample.timesteps import timesteps
from genaccel.spec import SpecError

MAX_ORDER = 4

FARTHEST = 2.0
"""A step longer than this many times the one before it starts a new history."""

# For deis' weight, whose pole, angle pi / 2, lies near the end of long steps: 1e-12 over all but the first step.
_POINTS, _GAUSS = np.polynomial.legendre.leggauss(64)

Weights = Callable[[Sequence[Level], Level], list[float]]


def multistep(
    denoise: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    schedule: Schedule,
    steps: int | None,
    order: int,
    weights: Weights,
) -> Tensor:
    """From noise to a clean volume, with up to ``order`` predictions a step.

    x / signal moves by the noise times the change of noise / signal, which is exact while the noise stays as it is:
    that is DDIM. Here the noise is a polynomial in the level's angle through the last ``order`` predictions, fewer in
    the first steps. The history starts anew where a step is more than ``FARTHEST`` times as long as the one before:
    a polynomial does not reach so far, and at the noisy end, where steps grow fastest, x0 is clipped, so that
    differences of predictions are differences of errors (without this rule the brightness of 3 to 8
    steps ended up to 0.5 from DDIM's).

    Args:
        denoise: predicts the noise of ``x`` at step ``t``; (B, C, D, H, W), (B,) -> (B, C, D, H, W).
        x: the start, standard normal, (B, C, D, H, W).
        schedule: gives the levels.
        steps: network evaluations; None: all of the schedule.
        order: predictions a step, 1..4.
        weights: of the predictions, newest first, given their levels and the next level; their sum is what DDIM
            gives to the newest one alone.

    Returns:
        The clean volume, (B, C, D, H, W), within -1..1.

    Raises:
        SpecError: where ``steps`` or ``order`` is out of range.
    """
    if not 1 <= order <= MAX_ORDER:
        raise SpecError(f"sample.order = {order}; set sample.order to 1 (the same as ddim) to {MAX_ORDER}")
    sequence = timesteps(schedule, steps)
    past: list[tuple[Level, Tensor]] = []
    for step, (now, then) in zip(sequence, pairwise(levels(schedule, sequence)), strict=True):
        x0, noise = predict(denoise, x, step, now)
        if past and now.angle - then.angle > FARTHEST * (past[0][0].angle - now.angle):
            past = []
        past = [(now, noise), *past[: order - 1]]
        # DDIM's step and corrections to it: near the noisy end the terms of x / signal are large and cancel.
        x = then.signal * x0 + then.noise * noise
        shares = weights([level for level, _ in past], then)
        for share, (_, earlier) in zip(shares[1:], past[1:], strict=True):
            x = x + share * (earlier - noise)
    return x.clamp(-1, 1)


def integrals(past: Sequence[Level], then: Level, weight: Callable[[float], float] = lambda angle: 1.0) -> list[float]:
    """Of each level's polynomial, times a weight, over the angles of the next step.

    Args:
        past: levels of the predictions, newest first; the step starts at the first one.
        then: where it ends.
        weight: of an angle.
    """
    nodes = [level.angle for level in past]
    half = (then.angle - nodes[0]) / 2
    sums = np.zeros(len(nodes))
    for point, gauss in zip(_POINTS, _GAUSS, strict=True):
        angle = nodes[0] + half * (1 + point)
        sums += np.array(lagrange(nodes, angle)) * (gauss * half * weight(angle))
    return sums.tolist()


def lagrange(nodes: Sequence[float], at: float) -> list[float]:
    """Values at ``at`` of the polynomials that are 1 at one node and 0 at the others."""
    values = []
    for node in nodes:
        value = 1.0
        for other in nodes:
            if other != node:
                value *= (at - other) / (node - other)
        values.append(value)
    return values
