"""A stand-in for Intel's management library: a machine of four devices, each with a counter of its own."""

from __future__ import annotations

from types import SimpleNamespace

MODULES = [3, 1, 0, 2]
"""The module of each device, by index: another order, as on real machines."""

energy_mj = 0


def hlmlInit() -> None: ...


def hlmlShutdown() -> None: ...


def hlmlGetDriverVersion() -> bytes:
    return b"1.24.2-fw"


def hlmlDeviceGetCount() -> int:
    return len(MODULES)


def hlmlDeviceGetHandleByIndex(index: int) -> int:
    return index


def hlmlDeviceGetModuleID(handle: int) -> int:
    return MODULES[handle]


def hlmlDeviceGetClockInfo(handle: int, clock_type: int = 0) -> int:
    return 1500 + MODULES[handle]


def hlmlDeviceGetPowerManagementDefaultLimit(handle: int) -> int:
    return 600_000


def hlmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:
    return SimpleNamespace(used=2**30 * (MODULES[handle] + 1))


def hlmlDeviceGetTotalEnergyConsumption(handle: int) -> int:
    return energy_mj + MODULES[handle]
