"""Energy of a call, from the device's own counter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from genaccel.device import Device
from genaccel.optimize.timing import Timing, consume

LEAST_SECONDS = 1.0
"""The counter moves in steps of tens of milliseconds, which a second drowns."""


@dataclass(frozen=True)
class Energy:
    """Energy of one call and how it was found."""

    joules: float
    method: str


def energy_of(device: Device, call: Callable[[], Tensor], timing: Timing) -> Energy:
    """Energy of one call: mean over the timed repeats where they last ``LEAST_SECONDS``, else over a loop that does.

    Raises:
        Unavailable: the device has no such counter.
    """
    if timing.joules is not None and sum(timing.repeats) >= LEAST_SECONDS:
        calls = len(timing.repeats)
        return Energy(timing.joules / calls, _method(device, calls, sum(timing.repeats), "the timed repeats"))
    device.synchronize()
    before, started, calls = device.energy_joules(), time.monotonic(), 0
    while not calls or time.monotonic() - started < LEAST_SECONDS:
        output = call()
        device.synchronize()
        calls += 1
    after, seconds = device.energy_joules(), time.monotonic() - started
    consume(output)
    return Energy((after - before) / calls, _method(device, calls, seconds, "a loop of its own"))


def _method(device: Device, calls: int, seconds: float, over: str) -> str:
    return f"difference of {device.energy_counter} over {over}: {calls} calls in {seconds:.2f} s"
