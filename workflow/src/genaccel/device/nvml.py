"""What NVIDIA's management library tells of a device: driver, clocks, power, energy, memory, other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from genaccel.device.base import Unavailable

T = TypeVar("T")


class NVML:
    """Readings of one device. Any failure of the vendor's library is a reading that is not there, never fatal.

    Args:
        uuid: of the device, as PyTorch has it.
    """

    def __init__(self, uuid: Any) -> None:
        self._uuid = f"GPU-{uuid}"

    def describe(self) -> dict[str, Any]:
        """Driver, clocks, power cap, and whether this process has the device for itself."""

        def read(nvml: Any, handle: Any) -> dict[str, Any]:
            return {
                "driver": nvml.nvmlSystemGetDriverVersion(),
                "sm_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                "memory_clock_mhz": nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                "power_cap_w": nvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000,
                "exclusive": len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)) <= 1,
            }

        try:
            return self._read(read)
        except Unavailable as error:
            return {"nvml": f"not read: {error}"}

    def energy_joules(self) -> float:
        """The counter of the energy since the driver was loaded, J; from Volta on."""
        return self._read(lambda nvml, handle: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000)

    def used_memory_bytes(self) -> int:
        """Memory in use by all processes and the driver."""
        return self._read(lambda nvml, handle: int(nvml.nvmlDeviceGetMemoryInfo(handle).used))

    def _read(self, reading: Callable[[Any, Any], T]) -> T:
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception as error:
            raise Unavailable(f"NVML does not answer: {error}") from None
        try:
            return reading(pynvml, pynvml.nvmlDeviceGetHandleByUUID(self._uuid))
        except Exception as error:
            raise Unavailable(f"NVML does not tell: {error}") from None
        finally:
            pynvml.nvmlShutdown()
