"""Times one call over and over: the first apart, warm-up apart, every output consumed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from torch import Tensor

from genaccel.device import Device, Unavailable
from genaccel.optimize.spec import TimingSpec


@dataclass(frozen=True)
class Timing:
    """Seconds of calls, in order, and the device's energy from before the first repeat to after the last.

    ``joules`` is None where no counter can be read.
    """

    first_call: float
    warmup: tuple[float, ...]
    repeats: tuple[float, ...]
    joules: float | None = None

    @property
    def median(self) -> float:
        return median(self.repeats)


def time_calls(device: Device, call: Callable[[], Tensor], timing: TimingSpec, least: int) -> Timing:
    """Calls until the repeats are done or the budget is spent.

    Args:
        call: what is timed; its output is read after each call, outside of the time, so that none can be left undone.
        timing: repeats, warm-up and budget in seconds, which starts after the first call: a compiler's minutes are not
            the call's.
        least: repeats that are made whatever the budget says.

    Raises:
        ValueError: an output is not finite: its time would be that of a failure.
    """

    def spent() -> bool:
        return time.monotonic() - started > timing.budget_s

    def once() -> float:
        seconds, output = device.timed(call)
        consume(output)
        return seconds

    first, warmup, repeats = once(), [], []
    started = time.monotonic()
    while len(warmup) < timing.warmup and not spent():
        warmup.append(once())
    before = _joules(device)
    while len(repeats) < max(timing.repeats, least) and (len(repeats) < least or not spent()):
        repeats.append(once())
    joules = None if before is None else _joules(device) - before
    return Timing(first, tuple(warmup), tuple(repeats), joules)


def consume(output: Tensor) -> None:
    """Reads an output on the host.

    Raises:
        ValueError: it is not finite.
    """
    mean = float(output.float().abs().mean())
    if not math.isfinite(mean):
        raise ValueError(f"an output of the measured call is {mean}; no time of it is worth keeping")


def _joules(device: Device) -> float | None:
    try:
        return device.energy_joules()
    except Unavailable:
        return None
