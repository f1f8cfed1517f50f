"""What Intel's management library tells of a Gaudi: driver, clock, power, energy, memory."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any, TypeVar

from genaccel.device.base import Unavailable

T = TypeVar("T")


class HLML:
    """Readings of one device. Any failure of the vendor's library is a reading that is not there, never fatal.

    Args:
        module: number of the device on its machine; None where it is not known, which does where there is but one.
    """

    def __init__(self, module: int | None) -> None:
        self._module = module

    def describe(self) -> dict[str, Any]:
        """Driver, clock and power cap."""

        def read(hlml: Any, handle: Any) -> dict[str, Any]:
            return {
                "driver": _text(hlml.hlmlGetDriverVersion()),
                "soc_clock_mhz": hlml.hlmlDeviceGetClockInfo(handle),
                "power_cap_w": hlml.hlmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,
            }

        try:
            return self._read(read)
        except Unavailable as error:
            return {"hlml": f"not read: {error}"}

    def energy_joules(self) -> float:
        """The counter of the energy since the driver was loaded, J."""
        return self._read(lambda hlml, handle: hlml.hlmlDeviceGetTotalEnergyConsumption(handle) / 1000)

    def used_memory_bytes(self) -> int:
        """Memory in use by all processes and the driver."""
        return self._read(lambda hlml, handle: int(hlml.hlmlDeviceGetMemoryInfo(handle).used))

    def _read(self, reading: Callable[[Any, Any], T]) -> T:
        try:
            import pyhlml

            # It prints, on standard output, that it cannot load its library.
            with contextlib.redirect_stdout(io.StringIO()):
                pyhlml.hlmlInit()
        except Exception as error:
            raise Unavailable(f"HLML does not answer: {error!r}") from None
        try:
            return reading(pyhlml, self._handle(pyhlml))
        except Unavailable:
            raise
        except Exception as error:
            raise Unavailable(f"HLML does not tell: {error!r}") from None
        finally:
            pyhlml.hlmlShutdown()

    def _handle(self, hlml: Any) -> Any:
        handles = [hlml.hlmlDeviceGetHandleByIndex(index) for index in range(hlml.hlmlDeviceGetCount())]
        if self._module is None and len(handles) != 1:
            raise Unavailable(
                f"HLML sees {len(handles)} devices, and nothing tells which is this process's; set "
                "HABANA_VISIBLE_MODULES"
            )
        for handle in handles:
            if self._module is None or hlml.hlmlDeviceGetModuleID(handle) == self._module:
                return handle
        raise Unavailable(f"HLML sees no module {self._module}")


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
