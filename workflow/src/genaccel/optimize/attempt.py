"""Runs a measurement that may run out of device memory, or ask for what the device does not tell."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

from genaccel.device import Device, Unavailable
from genaccel.optimize.outcome import Failed

T = TypeVar("T")


def attempt(device: Device, measure: Callable[[], T]) -> T | Failed:
    """What ``measure`` returns, or why there is nothing; any other error is raised."""
    try:
        return measure()
    except Unavailable as error:
        return Failed("unsupported", str(error))
    except Exception as error:
        if not device.is_out_of_memory(error):
            raise
        failed = Failed("oom", _short(error))
    # Only now, since the error held the frames that held the tensors.
    gc.collect()
    device.free_memory()
    return failed


def _short(error: BaseException) -> str:
    """The first sentences: what was asked for and, on a GPU, of how much."""
    text = " ".join(str(error).split()) or type(error).__name__
    return ". ".join(text.split(". ")[:3])
