"""An Intel Gaudi, through Intel's plugin of PyTorch. Written after its documentation: none was measured yet."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import torch

from genaccel.attention import Attention
from genaccel.device.base import Device
from genaccel.device.habana import (
    VISIBLE,
    chosen_module,
    fused_attention,
    plugin,
    select_module,
    version,
    visible_modules,
)
from genaccel.device.hlml import HLML
from genaccel.variant import Variant

T = TypeVar("T")

LACKS = {
    "tf32": "Gaudi's plugin has no switch for TF32",
    "compile": "torch.compile's modes are its compiler Inductor's, which makes no code for Gaudi",
    "cuda_graphs": "CUDA graphs need an NVIDIA GPU",
    "cudnn_benchmark": "cuDNN needs an NVIDIA GPU",
    "fused_kernels": "the fused kernels are in Triton, which makes no code for Gaudi here",
}
GENERATIONS = {"1": r"GAUDI ?1?$|HL-?20\d", "2": r"GAUDI ?2|HL-?22\d", "3": r"GAUDI ?3|HL-?3\d\d"}
"""Names by generation, as the plugin and the cards have them: the first is plain GAUDI."""
MEMORY = re.compile(r"allocation failed for size|PT_DEVMEM|out of memory", re.IGNORECASE)


class HPU(Device):
    """One Gaudi: a process can use no more, and no two processes the same.

    In lazy mode operators gather in a graph, which runs when ``mark_step`` ends it or a value is read; in eager mode
    they run one by one. ``PT_HPU_LAZY_MODE`` of the environment decides, and the state of ``apply`` records it.
    """

    kind = "hpu"
    # The plugin's event timers have reported more than the time that passed.
    clock = "host's monotonic clock, synchronised before and after"
    energy_counter = "HLML's counter of total energy"

    def __init__(self, index: int = 0, threads: int | None = None) -> None:
        super().__init__(index, threads)
        select_module(index)
        self.plugin = plugin()
        # Without its index: which Gaudi it is, the process has settled before.
        self.torch = torch.device("hpu")
        self.hlml = HLML(chosen_module())

    @property
    def name(self) -> str:
        """``Gaudi1``, ``Gaudi2`` or ``Gaudi3``; the plugin's own name where it is another."""
        name = self.plugin.hpu.get_device_name()
        known = (f"Gaudi{number}" for number, pattern in GENERATIONS.items() if re.search(pattern, name.upper()))
        return next(known, name)

    def lacks(self, capability: str) -> str | None:
        if capability == "fp16" and self.name == "Gaudi1":
            return "Gaudi1 has no FP16, which came with Gaudi2"
        return LACKS.get(capability)

    def apply(self, variant: Variant) -> dict[str, str | bool]:
        state = super().apply(variant)
        attention = "FusedSDPA" if self.attention(variant) else "PyTorch's"
        return state | {"execution": "lazy" if self.plugin.lazy else "eager", "attention": attention}

    def attention(self, variant: Variant) -> Attention | None:
        """FusedSDPA in half precision, which it is made for; strict FP32 stays with PyTorch's own products."""
        fused = fused_attention() if variant.autocast != "off" else None
        return fused and (lambda q, k, v: fused(q, k, v, None, 0.0, False))

    def _precision_units(self) -> dict[str, Any]:
        return {"matmul": IEEE(), "convolution": IEEE()}

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self.plugin.hpu.random.manual_seed_all(seed)

    def generator(self, seed: int) -> torch.Generator:
        """On the host: its numbers are the same on every accelerator, whatever the plugin's version."""
        return torch.Generator().manual_seed(seed)

    def mark_step(self) -> None:
        if self.plugin.lazy:
            self.plugin.core.mark_step()

    def synchronize(self) -> None:
        # What is only gathered yet is not waited for.
        self.mark_step()
        self.plugin.hpu.synchronize()

    def timed(self, call: Callable[[], T]) -> tuple[float, T]:
        self.synchronize()
        started = time.perf_counter()
        # Held until the device is done: of results that nobody holds the graph's compiler leaves out the work.
        returned = call()
        self.synchronize()
        return time.perf_counter() - started, returned

    def collectives(self) -> str:
        # The import makes the library known to PyTorch.
        import_module("habana_frameworks.torch.distributed.hccl")
        return "hccl"

    def reset_peak_memory(self) -> None:
        self.plugin.hpu.reset_peak_memory_stats()

    def peak_memory_bytes(self) -> int:
        return int(self.plugin.hpu.max_memory_allocated())

    def memory_bytes(self) -> int:
        return int(self.plugin.hpu.mem_get_info()[1])

    def used_memory_bytes(self) -> int:
        return self.hlml.used_memory_bytes()

    def energy_joules(self) -> float:
        return self.hlml.energy_joules()

    def is_out_of_memory(self, error: BaseException) -> bool:
        # The plugin's allocator raises no class of its own.
        return super().is_out_of_memory(error) or (isinstance(error, RuntimeError) and bool(MEMORY.search(str(error))))

    def describe(self) -> dict[str, Any]:
        described = super().describe() | {
            "plugin_name": self.plugin.hpu.get_device_name(),
            "synapse": version(),
            "execution": "lazy" if self.plugin.lazy else "eager",
            "visible_modules": ",".join(visible_modules()) or f"all: {VISIBLE} is not set",
            "module": chosen_module(),
            "exclusive": True,
        }
        switches = {name: value for name, value in os.environ.items() if name.startswith("PT_HPU_")}
        return described | {"environment": switches} | self.hlml.describe()


class IEEE:
    """FP32 products as they always are on a Gaudi: what cannot be switched reads back the same."""

    @property
    def fp32_precision(self) -> str:
        return "ieee"

    @fp32_precision.setter
    def fp32_precision(self, precision: str) -> None:
        pass
