"""An accelerator is one object; nothing else in the library says ``cuda``."""

from __future__ import annotations

import platform
import re
import resource
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal

import torch

from genaccel.command import cpu_threads
from genaccel.spec import SpecError, nearest

Precision = Literal["fp32", "tf32", "bf16"]


class Device(ABC):
    """What every accelerator answers. Subclasses: one a kind.

    Args:
        index: which of the visible devices of its kind.
        threads: CPU threads of this process; None takes what SLURM or the machine allows.
    """

    kind = ""
    fixed_batch: int | None = None
    """How many volumes a network gets at a time where the number must never vary, since libraries choose
    kernels by it and a volume's last bits would follow. On a CPU two: oneDNN takes pairs of small volumes
    that it leaves to a five times slower kernel one by one."""

    def __init__(self, index: int = 0, threads: int | None = None) -> None:
        torch.set_num_threads(cpu_threads(threads))
        self.index = index
        self.torch = torch.device(self.kind, index) if self.kind != "cpu" else torch.device("cpu")

    @property
    @abstractmethod
    def name(self) -> str:
        """The device's model as its maker writes it."""

    @property
    def slug(self) -> str:
        """The name as a table key and folder name: ``nvidia-h200``."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @abstractmethod
    def lacks(self, capability: str) -> str | None:
        """Why the device lacks ``tf32``, ``bf16``, ...; None where it has it."""

    def set_precision(self, precision: Precision) -> dict[str, str]:
        """Sets every FP32 precision flag explicitly and returns the state read back.

        Raises:
            SpecError: the device lacks the precision.
        """
        if reason := (None if precision == "fp32" else self.lacks(precision)):
            raise SpecError(f"precision {precision}: {reason}; use fp32")
        inner = "tf32" if precision == "tf32" else "ieee"
        # Only the new flags: PyTorch raises where old (allow_tf32) and new ones are mixed.
        for unit in self._precision_units().values():
            unit.fp32_precision = inner
        effective = {name: unit.fp32_precision for name, unit in self._precision_units().items()}
        return effective | {"autocast": "bf16" if precision == "bf16" else "off"}

    @abstractmethod
    def _precision_units(self) -> dict[str, Any]:
        """The library's switches of FP32 arithmetic, by what they switch."""

    def autocast(self, precision: Precision) -> AbstractContextManager[Any]:
        """Autocast for ``bf16``; nothing otherwise."""
        if precision != "bf16":
            return nullcontext()
        return torch.autocast(self.torch.type, dtype=torch.bfloat16)

    def seed(self, seed: int) -> None:
        """Seeds the default generators of the host and this device."""
        torch.manual_seed(seed)

    def generator(self, seed: int) -> torch.Generator:
        """A generator of its own on this device."""
        return torch.Generator(self.torch).manual_seed(seed)

    def synchronize(self) -> None:
        """Waits until all work given to the device is done."""

    def mark_step(self) -> None:
        """Ends a step where a lazy device gathers work; nothing elsewhere."""

    def reset_peak_memory(self) -> None:
        """Starts a new reading of ``peak_memory_bytes`` where the device can."""

    @abstractmethod
    def peak_memory_bytes(self) -> int:
        """Peak of this process's memory on the device."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Memory of the device in all."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` says that the device's memory ran out."""
        return isinstance(error, torch.OutOfMemoryError)

    def describe(self) -> dict[str, Any]:
        """Name, driver and state, for a measurement's provenance."""
        return {"kind": self.kind, "name": self.name, "memory_bytes": self.memory_bytes()}


class CPU(Device):
    kind = "cpu"
    fixed_batch = 2

    @property
    def name(self) -> str:
        return "cpu"

    def lacks(self, capability: str) -> str | None:
        return {"tf32": "a CPU has no TF32 tensor cores", "cuda_graphs": "CUDA graphs need an NVIDIA GPU"}.get(
            capability
        )

    def _precision_units(self) -> dict[str, Any]:
        return {"matmul": torch.backends.mkldnn.matmul, "convolution": torch.backends.mkldnn.conv}

    def peak_memory_bytes(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def memory_bytes(self) -> int:
        pages = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        return int(pages.group(1)) * 1024 if pages else 0

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError)

    def describe(self) -> dict[str, Any]:
        models = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        return super().describe() | {
            "model": models[0] if models else platform.processor(),
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        }


class CUDA(Device):
    kind = "cuda"

    def __init__(self, index: int = 0, threads: int | None = None) -> None:
        super().__init__(index, threads)
        torch.cuda.set_device(self.torch)

    @property
    def name(self) -> str:
        return torch.cuda.get_device_name(self.torch)

    def lacks(self, capability: str) -> str | None:
        major, minor = torch.cuda.get_device_capability(self.torch)
        if capability in ("tf32", "bf16") and major < 8:
            return f"{self.name} (compute capability {major}.{minor}) has no {capability.upper()}, which came with 8.0"
        return None

    def _precision_units(self) -> dict[str, Any]:
        return {"matmul": torch.backends.cuda.matmul, "convolution": torch.backends.cudnn.conv}

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch)

    def reset_peak_memory(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.torch)

    def peak_memory_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self.torch)

    def memory_bytes(self) -> int:
        return torch.cuda.get_device_properties(self.torch).total_memory

    def describe(self) -> dict[str, Any]:
        major, minor = torch.cuda.get_device_capability(self.torch)
        described = super().describe() | {
            "compute_capability": f"{major}.{minor}",
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
        }
        return described | _nvml(torch.cuda.get_device_properties(self.torch).uuid)


def _nvml(uuid: Any) -> dict[str, Any]:
    """Driver, clocks, power and the other processes on the device, where NVML answers."""
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception as error:  # any failure of a vendor library: recorded, never fatal
        return {"nvml": f"not read: {error}"}
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        return {
            "driver": pynvml.nvmlSystemGetDriverVersion(),
            "sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
            "memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
            "power_cap_w": pynvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000,
            "exclusive": len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) <= 1,
        }
    except pynvml.NVMLError as error:
        return {"nvml": f"not read: {error}"}
    finally:
        pynvml.nvmlShutdown()


KINDS: dict[str, type[Device]] = {"cpu": CPU, "cuda": CUDA}


def open_device(kind: str = "auto", index: int = 0, threads: int | None = None) -> Device:
    """Opens an accelerator.

    Args:
        kind: ``cpu``, ``cuda``, or ``auto`` for the best that is there.
        index: which of the visible devices.
        threads: CPU threads of this process.

    Raises:
        SpecError: unknown kind, or one that this machine does not have.
    """
    if kind == "auto":
        kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind not in KINDS:
        raise SpecError(f"device {kind!r} is unknown; {nearest(kind, ['auto', *KINDS])}")
    if kind == "cuda" and index >= torch.cuda.device_count():
        raise SpecError(
            f"device cuda:{index} was asked for, but torch {torch.__version__} sees {torch.cuda.device_count()} NVIDIA "
            "GPU(s) here; run on a GPU node, check CUDA_VISIBLE_DEVICES, or set device: cpu"
        )
    return KINDS[kind](index, threads)
