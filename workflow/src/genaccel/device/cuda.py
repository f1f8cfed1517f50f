"""An NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar

import torch

from genaccel.device.base import Device
from genaccel.device.graph import Graphed
from genaccel.device.nvml import NVML

T = TypeVar("T")

SINCE = {"tf32": (8, 0), "bf16": (8, 0), "fp16": (7, 0), "fused_kernels": (8, 0)}
"""Compute capability with which each came: FP16's from the first tensor cores on."""
TRITON = ("compile", "fused_kernels")
"""What needs the package triton."""


class CUDA(Device):
    kind = "cuda"
    clock = "CUDA events"
    energy_counter = "NVML's counter of total energy"

    def __init__(self, index: int = 0, threads: int | None = None) -> None:
        super().__init__(index, threads)
        torch.cuda.set_device(self.torch)
        self.nvml = NVML(torch.cuda.get_device_properties(self.torch).uuid)

    @property
    def name(self) -> str:
        return torch.cuda.get_device_name(self.torch)

    def lacks(self, capability: str) -> str | None:
        have, need = torch.cuda.get_device_capability(self.torch), SINCE.get(capability, (0, 0))
        if have < need:
            what = capability.replace("_", " ") if "_" in capability else capability.upper()
            came = ".".join(map(str, need))
            return f"{self.name} (compute capability {have[0]}.{have[1]}) has no {what}, which came with {came}"
        if capability in TRITON and find_spec("triton") is None:
            return f"{capability} needs the package triton, which is not installed"
        return None

    def _precision_units(self) -> dict[str, Any]:
        return {"matmul": torch.backends.cuda.matmul, "convolution": torch.backends.cudnn.conv}

    def _set_cudnn_benchmark(self, on: bool) -> None:
        torch.backends.cudnn.benchmark = on

    def _cudnn_benchmark(self) -> bool:
        return torch.backends.cudnn.benchmark

    def synchronize(self) -> None:
        torch.cuda.synchronize(self.torch)

    def timed(self, call: Callable[[], T]) -> tuple[float, T]:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # The device starts idle, as with any first call; within the call the host runs ahead of it.
        self.synchronize()
        start.record()
        returned = call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000, returned

    def graphed(self, step: Callable[..., T]) -> Callable[..., T]:
        return Graphed(step)

    def collectives(self) -> str:
        return "nccl"

    @contextmanager
    def counted(self) -> Iterator[None]:
        runtime = torch.cuda.cudart()
        runtime.cudaProfilerStart()
        try:
            yield
            self.synchronize()
        finally:
            runtime.cudaProfilerStop()

    def reset_peak_memory(self) -> None:
        torch.cuda.reset_peak_memory_stats(self.torch)

    def free_memory(self) -> None:
        torch.cuda.empty_cache()

    def peak_memory_bytes(self) -> int:
        return torch.cuda.max_memory_allocated(self.torch)

    def memory_bytes(self) -> int:
        return torch.cuda.get_device_properties(self.torch).total_memory

    def used_memory_bytes(self) -> int:
        return self.nvml.used_memory_bytes()

    def energy_joules(self) -> float:
        return self.nvml.energy_joules()

    def describe(self) -> dict[str, Any]:
        major, minor = torch.cuda.get_device_capability(self.torch)
        described = super().describe() | {
            "compute_capability": f"{major}.{minor}",
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
        }
        return described | self.nvml.describe()
