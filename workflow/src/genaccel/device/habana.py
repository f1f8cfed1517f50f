"""Intel's plugin of PyTorch for Gaudi, ``habana_frameworks``: whether it is here, and which module a process takes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from genaccel.device.base import Unavailable
from genaccel.spec import SpecError

VISIBLE, CHOSEN, LAZY = "HABANA_VISIBLE_MODULES", "HLS_MODULE_ID", "PT_HPU_LAZY_MODE"


@dataclass(frozen=True)
class Plugin:
    """The parts of the plugin that are used.

    Attributes:
        core: ``habana_frameworks.torch.core``, which ends the steps of a lazy device.
        hpu: ``habana_frameworks.torch.hpu``: the device, its memory and random numbers.
        lazy: whether operators are gathered into a graph until a step ends, or run one by one.
    """

    core: Any
    hpu: Any
    lazy: bool


@functools.cache
def plugin() -> Plugin:
    """The plugin, imported at the first call.

    Raises:
        Unavailable: it is not installed or does not load.
    """
    try:
        core = import_module("habana_frameworks.torch.core")
        hpu = import_module("habana_frameworks.torch.hpu")
    except (ImportError, OSError, RuntimeError) as error:
        raise Unavailable(f"Intel's plugin habana_frameworks does not load: {error}") from None
    return Plugin(core, hpu, _lazy())


def device_count() -> int:
    """Gaudis that this process could use; 0 without the plugin."""
    try:
        hpu = plugin().hpu
    except Unavailable:
        return 0
    return hpu.device_count() if hpu.is_available() else 0


def select_module(index: int) -> None:
    """Takes the ``index``-th of ``HABANA_VISIBLE_MODULES``, where those are named; before the device is used.

    Left to itself the plugin takes the module whose number is the process's local rank, or the first that is free:
    not those that an allocation of part of a node names.

    Raises:
        SpecError: fewer are named.
    """
    modules = visible_modules()
    if not modules:
        return
    if index >= len(modules):
        raise SpecError(
            f"device hpu:{index} was asked for, but {VISIBLE}={os.environ[VISIBLE]} names {len(modules)}; ask for "
            "fewer processes, or for more devices"
        )
    os.environ.setdefault(CHOSEN, modules[index])


def visible_modules() -> list[str]:
    """The modules that ``HABANA_VISIBLE_MODULES`` names; none where it is not set, which makes all visible."""
    return [module.strip() for module in os.environ.get(VISIBLE, "").split(",") if module.strip()]


def chosen_module() -> int | None:
    """The module of this process, as far as its environment tells."""
    chosen = os.environ.get(CHOSEN) or os.environ.get("LOCAL_RANK")
    return int(chosen) if chosen else None


def fused_attention() -> Callable[..., Any] | None:
    """The plugin's fused attention; None where this version has none."""
    try:
        return import_module("habana_frameworks.torch.hpex.kernels").FusedSDPA.apply
    except (ImportError, AttributeError):
        return None


def version() -> str:
    """Of the plugin, which is that of the whole Synapse stack."""
    try:
        return metadata.version("habana-torch-plugin")
    except metadata.PackageNotFoundError:
        return "not read: there is no package habana-torch-plugin"


def _lazy() -> bool:
    """As the plugin has it: its default is eager since Synapse 1.21, so that the environment alone does not tell."""
    try:
        return bool(import_module("habana_frameworks.torch.utils.internal").is_lazy())
    except (ImportError, AttributeError):
        return os.environ.get(LAZY, "1") != "0"
