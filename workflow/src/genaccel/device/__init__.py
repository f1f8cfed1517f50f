"""An accelerator is one object; nothing else in the library says ``cuda``."""

from __future__ import annotations

import os

import torch

from genaccel.device.base import Device, Precision, Unavailable
from genaccel.device.cpu import CPU
from genaccel.device.cuda import CUDA
from genaccel.device.habana import device_count as gaudis
from genaccel.device.habana import plugin, visible_modules
from genaccel.device.hpu import HPU
from genaccel.ownership import GAUDI, check_devices, check_driver, own_devices
from genaccel.spec import SpecError, nearest

__all__ = ["CPU", "CUDA", "HPU", "KINDS", "Device", "Precision", "Unavailable", "open_device"]

KINDS: dict[str, type[Device]] = {"cpu": CPU, "cuda": CUDA, "hpu": HPU}


def open_device(kind: str = "auto", index: int = 0, threads: int | None = None) -> Device:
    """Opens an accelerator.

    Args:
        kind: ``cpu``, ``cuda``, ``hpu``, or ``auto`` for the first of cuda, hpu and cpu that is there.
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
        kind = "cuda" if torch.cuda.is_available() else "hpu" if gaudis() else "cpu"
        if kind == "cpu":
            check_driver(0, GAUDI)
    if kind not in KINDS:
        raise SpecError(f"device {kind!r} is unknown; {nearest(kind, ['auto', *KINDS])}")
    if kind == "cuda" and index >= torch.cuda.device_count():
        raise SpecError(
            f"device cuda:{index} was asked for, but torch {torch.__version__} sees {torch.cuda.device_count()} NVIDIA "
            "GPU(s) here; run on a GPU node, check CUDA_VISIBLE_DEVICES, or set device: cpu"
        )
    if kind == "cuda":
        check_devices(torch.cuda.device_count(), asked)
    if kind == "hpu":
        _check_gaudi(index)
        # The plugin counts what the machine has; a process takes what is named.
        check_devices(len(visible_modules()) or gaudis(), asked, GAUDI)
    return KINDS[kind](index, threads)


def _check_gaudi(index: int) -> None:
    remedy = "run in Intel's container on a Gaudi node (envs/gaudi.yaml), or set device: cpu"
    try:
        plugin()
    except Unavailable as error:
        raise SpecError(f"device hpu was asked for, but {error}; {remedy}") from None
    if index >= (count := gaudis()):
        raise SpecError(
            f"device hpu:{index} was asked for, but the plugin sees {count} Gaudi(s) here; {remedy}, or check "
            "HABANA_VISIBLE_MODULES"
        )
