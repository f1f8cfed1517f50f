"""Which steps of the schedule a sampler visits.

Two facts decide it, both seen on closed-form problems (a Gaussian whose voxels share a brightness, a mixture of three
tissues; T = 250) whose noise prediction is off by a constant of 0.003 to 0.02, as a trained network's is:

- Where to start. A wrong noise is wrong in x0 by noise over signal, 5,073 times as much at the clipped last step: x0
  there is the error's sign, clipped, and the first leap of few steps writes it into a brightness that later steps keep.
  With an error of 0.003, ten evenly spaced steps from T - 1 missed a brightness of 0.2 by -0.69, these steps by -0.13;
  hundreds of small steps forgive the same error, since they forget. Starting far below instead leaves
  the mean out of the start, which later steps keep as well (Lin et al.). Between the two lies lambda = -5.1, where
  DPM-Solver's code cuts the cosine schedule (its paper at t = 0.9946, lambda = -4.8).
- How to space them. Evenly spaced steps end at noise over signal of 0.16 (ten steps) and wipe out finer texture; steps
  even in lambda leap too far in between, where tissues part. Dense at both ends was best or close to it for every
  sampler at 5, 10 and 20 steps.

Sources: Lu et al., DPM-Solver, NeurIPS 2022, appendix D (where to stop); Lin et al., Common Diffusion Noise
Schedules and Sample Steps Are Flawed, WACV 2024, section 3 (what a late start costs).
"""

from __future__ import annotations

import numpy as np

from genaccel.med_ddpm.schedule import Schedule
from genaccel.spec import SpecError

NOISIEST = -5.1
"""Logarithm of signal over noise where few steps start."""


def timesteps(schedule: Schedule, steps: int | None) -> list[int]:
    """Steps of the network, falling, dense at the noisy and at the clean end: T sin^2 of even angles.

    They start at the step whose signal over noise is nearest to ``NOISIEST``, or as late as so many steps allow.

    Args:
        schedule: T steps.
        steps: how many; 1 <= steps <= T; None: all of them.

    Raises:
        SpecError: where ``steps`` is out of range.
    """
    T = schedule.T
    steps = T if steps is None else steps
    if not 1 <= steps <= T:
        raise SpecError(f"sample.steps = {steps}, but the schedule has T = {T}; set sample.steps to 1..{T}")
    start = max(noisiest_step(schedule), steps - 1)
    wanted = (start + 1) * np.sin(np.pi / 2 * np.arange(steps, 0, -1) / steps) ** 2 - 1
    sequence = np.rint(wanted).astype(int)
    # Rounding may repeat a step near the ends: push later ones down, then what fell below 0 up again.
    places = np.arange(steps)
    sequence = np.minimum.accumulate(sequence + places) - places
    return [int(step) for step in np.maximum(sequence, places[::-1])]


def noisiest_step(schedule: Schedule) -> int:
    """The step whose signal over noise is nearest to ``NOISIEST``: T - 2 at T = 250, T - 1 below T = 46."""
    kept = np.asarray(schedule.alphas_cumprod_exact)
    return int(np.abs(np.log(kept / (1 - kept)) / 2 - NOISIEST).argmin())
