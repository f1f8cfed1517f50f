"""An accelerator is one object; nothing else in the library says ``cuda``."""

from __future__ import annotations

import os

import torch

from genaccel.device.base import Device, Precision, Unavailable
from genaccel.device.cpu import CPU
from genaccel.device.cuda import CUDA
from genaccel.ownership import check_devices, check_driver, own_devices
from genaccel.spec import SpecError, nearest

__all__ = ["CPU", "CUDA", "KINDS", "Device", "Precision", "Unavailable", "open_device"]

KINDS: dict[str, type[Device]] = {"cpu": CPU, "cuda": CUDA}


def open_device(kind: str = "auto", index: int = 0, threads: int | None = None) -> Device:
    """Opens an accelerator.

    Args:
        kind: ``cpu``, ``cuda``, or ``auto`` for the best that is there.
        index: which of the visible devices.
        threads: CPU threads of this process.

    Raises:
        SpecError: unknown kind, one that this machine does not have, or not the number of devices that a profile gave.
    """
    # Ranks of one machine share its devices.
    asked = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    own_devices(kind, asked)
    if kind == "auto":
        check_driver(torch.cuda.device_count())
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind not in KINDS:
        raise SpecError(f"device {kind!r} is unknown; {nearest(kind, ['auto', *KINDS])}")
    if kind == "cuda" and index >= torch.cuda.device_count():
        raise SpecError(
            f"device cuda:{index} was asked for, but torch {torch.__version__} sees {torch.cuda.device_count()} NVIDIA "
            "GPU(s) here; run on a GPU node, check CUDA_VISIBLE_DEVICES, or set device: cpu"
        )
    if kind == "cuda":
        check_devices(torch.cuda.device_count(), asked)
    return KINDS[kind](index, threads)
