from __future__ import annotations

import habana_frameworks
from habana_frameworks import EVENTS
from habana_frameworks.torch.hpu import random

__all__ = ["random"]


def is_available() -> bool:
    return habana_frameworks.COUNT > 0


def device_count() -> int:
    return habana_frameworks.COUNT


def get_device_name() -> str:
    return habana_frameworks.NAME


def synchronize() -> None:
    EVENTS.append("synchronize")


def reset_peak_memory_stats() -> None:
    EVENTS.append("reset_peak_memory_stats")


def max_memory_allocated() -> int:
    return 5 * 2**30


def mem_get_info() -> tuple[int, int]:
    return 90 * 2**30, 94 * 2**30
