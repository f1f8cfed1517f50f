"""One process a device: ``genaccel.launch`` starts them, DistributedDataParallel keeps them in step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch.distributed as dist

from genaccel.device import Device


@dataclass(frozen=True)
class Process:
    """This process among all that train together."""

    rank: int = 0
    local_rank: int = 0
    world: int = 1


@contextmanager
def process_group(device: Device) -> Iterator[Process]:
    """Joins the processes that torchrun started; alone, it joins nothing.

    Args:
        device: of this process; its kind decides between NCCL, HCCL and gloo.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        yield Process()
        return
    dist.init_process_group(device.collectives())
    try:
        yield Process(dist.get_rank(), int(os.environ["LOCAL_RANK"]), world)
    finally:
        dist.destroy_process_group()
