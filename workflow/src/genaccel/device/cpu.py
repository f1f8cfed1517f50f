"""The host's own processor."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from genaccel.device.base import Device, Unavailable

T = TypeVar("T")

LACKS = {
    "tf32": "a CPU has no TF32 tensor cores",
    "fp16": "PyTorch's convolutions in FP16 are not made for CPUs",
    "cuda_graphs": "CUDA graphs need an NVIDIA GPU",
    "cudnn_benchmark": "cuDNN needs an NVIDIA GPU",
    "fused_kernels": "the fused kernels need an NVIDIA GPU",
}


class CPU(Device):
    kind = "cpu"
    fixed_batch = 2
    clock = "host's monotonic clock"

    @property
    def name(self) -> str:
        return "cpu"

    def lacks(self, capability: str) -> str | None:
        if capability == "compile" and not _compiler():
            return "torch.compile needs a C++ compiler on a CPU, and there is none in PATH"
        return LACKS.get(capability)

    def _precision_units(self) -> dict[str, Any]:
        return {"matmul": torch.backends.mkldnn.matmul, "convolution": torch.backends.mkldnn.conv}

    def timed(self, call: Callable[[], T]) -> tuple[float, T]:
        started = time.perf_counter()
        returned = call()
        return time.perf_counter() - started, returned

    def peak_memory_bytes(self) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def memory_bytes(self) -> int:
        pages = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        return int(pages.group(1)) * 1024 if pages else 0

    def used_memory_bytes(self) -> int:
        raise Unavailable("a CPU shares its memory with the whole machine; peak_memory is the process's")

    def energy_joules(self) -> float:
        raise Unavailable("a CPU has no energy counter that NVML reads")

    def is_out_of_memory(self, error: BaseException) -> bool:
        # PyTorch's allocator on the host raises no class of its own.
        return isinstance(error, MemoryError) or "can't allocate memory" in str(error)

    def describe(self) -> dict[str, Any]:
        models = re.findall(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        return super().describe() | {
            "model": models[0] if models else platform.processor(),
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
        }


def _compiler() -> str | None:
    return next(filter(None, map(shutil.which, (os.environ.get("CXX", "g++"), "clang++"))), None)
