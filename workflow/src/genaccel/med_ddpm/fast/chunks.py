"""How volumes are cut for reductions: kernels of the fused path sum chunks of rows, and one small kernel the chunks."""

from __future__ import annotations

import os

from torch import Tensor

ROWS = 64
"""Voxels that a program holds at a time."""

COLUMNS = 64
"""Channels that a program holds: 128 bytes a row in BF16, one full line of memory."""

MOST = 1024
"""Most chunks of a volume: enough programs to fill the largest GPU several times."""


def chunk_rows(voxels: int) -> int:
    """Voxels of one chunk: a multiple of ``ROWS`` that cuts a volume into at most ``MOST``."""
    tiles = -(-voxels // ROWS)
    return -(-tiles // MOST) * ROWS


def chunks(voxels: int) -> int:
    """Number of chunks of a volume."""
    return -(-voxels // chunk_rows(voxels))


def columns(channels: int) -> int:
    """Channels a program holds: ``COLUMNS``, or fewer where the tensor has fewer; a power of two, at least 16."""
    size = 16
    while size < min(channels, COLUMNS):
        size *= 2
    return size


def triton_runs(x: Tensor) -> bool:
    """Whether kernels can work on a tensor: on a GPU, or anywhere under Triton's interpreter (tests).

    On the meta device they are not started (``memory``), but what they would be given is counted.
    """
    return x.is_cuda or x.is_meta or os.environ.get("TRITON_INTERPRET") == "1"
