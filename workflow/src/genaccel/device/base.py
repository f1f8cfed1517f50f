"""What every accelerator answers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar

import torch

from genaccel import attention
from genaccel.attention import Attention
from genaccel.command import cpu_threads
from genaccel.spec import SpecError
from genaccel.variant import Variant

Precision = Literal["fp32", "tf32", "bf16", "fp16"]
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}
T = TypeVar("T")

INERT = ("cudnn_benchmark",)
"""Capabilities without which a variant runs all the same: what they switch is not there to be switched."""


class Unavailable(RuntimeError):
    """A reading that this device or machine does not give; the message says why."""


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

    energy_counter = ""
    """What ``energy_joules`` reads, for the record."""

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
        """Why the device lacks one of ``Variant.needs`` (``tf32``, ``bf16``, ...); None where it has it."""

    def apply(self, variant: Variant) -> dict[str, str | bool]:
        """Sets every global switch of a variant explicitly and returns the whole state, read back where it can be.

        What the network itself carries (dtype of the weights, layout, compiler, graphs, kernels) is returned as asked
        for; ``genaccel.med_ddpm.network`` sets it. ``cudnn_benchmark`` is off where there is no cuDNN.

        Raises:
            SpecError: the device lacks what the variant needs.
        """
        for need in variant.needs:
            if need not in INERT and (reason := self.lacks(need)):
                raise SpecError(f"{reason}; choose another variant, such as fp32_strict, or another device")
        # Only the new flags: PyTorch raises where old (allow_tf32) and new ones are mixed.
        units = self._precision_units()
        units["matmul"].fp32_precision = variant.matmul
        units["convolution"].fp32_precision = variant.convolution
        self._set_cudnn_benchmark(variant.cudnn_benchmark and not self.lacks("cudnn_benchmark"))
        attention.use(self.attention(variant))
        with self.autocast(variant.autocast):
            autocast = torch.is_autocast_enabled(self.torch.type) and torch.get_autocast_dtype(self.torch.type)
        dtypes = {dtype: name for name, dtype in HALVES.items()}
        return variant.model_dump(mode="json") | {
            "matmul": units["matmul"].fp32_precision,
            "convolution": units["convolution"].fp32_precision,
            "autocast": dtypes[autocast] if autocast else "off",
            "cudnn_benchmark": self._cudnn_benchmark(),
        }

    def attention(self, variant: Variant) -> Attention | None:
        """The device's own kernel of attention for a variant; None for PyTorch's."""
        return None

    @abstractmethod
    def _precision_units(self) -> dict[str, Any]:
        """The library's switches of FP32 arithmetic, by what they switch."""

    def _set_cudnn_benchmark(self, on: bool) -> None:
        """Lets cuDNN time its algorithms, where there is cuDNN."""

    def _cudnn_benchmark(self) -> bool:
        return False

    def autocast(self, half: str) -> AbstractContextManager[Any]:
        """Autocast to ``bf16`` or ``fp16``; nothing for any other precision."""
        if half not in HALVES:
            return nullcontext()
        return torch.autocast(self.torch.type, dtype=HALVES[half])

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

    @abstractmethod
    def timed(self, call: Callable[[], T]) -> tuple[float, T]:
        """Seconds until the device had done the call, by the clock that ``clock`` names, and what it returned."""

    @property
    @abstractmethod
    def clock(self) -> str:
        """What ``timed`` measures with, for the record."""

    def graphed(self, step: Callable[..., T]) -> Callable[..., T]:
        """``step`` recorded once and replayed without launches from the host.

        Raises:
            SpecError: the device lacks ``cuda_graphs``.
        """
        raise SpecError(f"{self.lacks('cuda_graphs')}; set cuda_graphs: false")

    def collectives(self) -> str:
        """The library that processes on devices of this kind talk through, known to ``torch.distributed``."""
        return "gloo"

    def counted(self) -> AbstractContextManager[Any]:
        """The range that a profiler of hardware counters looks at, where the device has one."""
        return nullcontext()

    def reset_peak_memory(self) -> None:
        """Starts a new reading of ``peak_memory_bytes`` where the device can."""

    def free_memory(self) -> None:
        """Gives cached memory back to the device."""

    @abstractmethod
    def peak_memory_bytes(self) -> int:
        """Peak of this process's memory on the device."""

    @abstractmethod
    def memory_bytes(self) -> int:
        """Memory of the device in all."""

    def used_memory_bytes(self) -> int:
        """Memory in use on the whole device, by all processes and the driver.

        Raises:
            Unavailable: nothing tells.
        """
        raise Unavailable(f"{self.name}: nothing reports the memory that is in use on the whole device")

    def energy_joules(self) -> float:
        """A counter of the energy that the device has used, J; differences count.

        Raises:
            Unavailable: the device has no such counter, or it cannot be read.
        """
        raise Unavailable(f"{self.name}: there is no energy counter to read")

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` says that the device's memory ran out."""
        return isinstance(error, torch.OutOfMemoryError)

    def describe(self) -> dict[str, Any]:
        """Name, driver and state, for a measurement's provenance."""
        return {"kind": self.kind, "name": self.name, "memory_bytes": self.memory_bytes()}
