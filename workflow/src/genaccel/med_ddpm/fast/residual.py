"""Ends of residual blocks: the branch, its bias and the skip connection in one pass, with the moments of the sum.

Volumes are (B, V, C), contiguous. The next GroupNorm needs the moments of what is written here; taking them
while it is in registers saves it a pass over memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import ROWS, chunk_rows, chunks, columns, triton_runs
from genaccel.med_ddpm.fast.group_norm import moments


def residual_add(h: Tensor, bias: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """``h + bias + x``.

    Args:
        h: output of the branch's last convolution, without its bias, (B, V, C); written with the sum.
        bias: (C,).
        x: the block's input, (B, V, C).

    Returns:
        The sum, which takes the memory of ``h``, and its ``moments``.
    """
    return _residual(h, bias, [x], None)


def residual_project(h: Tensor, bias: Tensor, sources: Sequence[Tensor], kernel: Tensor) -> tuple[Tensor, Tensor]:
    """``h + bias + kernel @ sources``: the skip connection is a 1x1 convolution over one or two volumes' channels.

    Args:
        h: (B, V, C); written with the sum.
        bias: (C,), of both convolutions.
        sources: one or two volumes, (B, V, K) each.
        kernel: (C, all K), in the dtype of the volumes.

    Returns:
        As ``residual_add``.
    """
    return _residual(h, bias, sources, kernel)


def _residual(h: Tensor, bias: Tensor, sources: Sequence[Tensor], kernel: Tensor | None) -> tuple[Tensor, Tensor]:
    batch, voxels, channels = h.shape
    if not triton_runs(h):
        skip = sources[0].float() if kernel is None else torch.cat(list(sources), -1).float() @ kernel.float().T
        h.copy_(h.float() + bias.float() + skip)
        return h, moments(h)
    from genaccel.med_ddpm.fast import _residual as kernels

    count, block = chunks(voxels), columns(channels)
    out = torch.empty(batch, count, 2, channels, device=h.device)
    first, second = sources[0], sources[-1]
    inner = [source.shape[-1] for source in sources] if kernel is not None else [0]
    kernels.residual_end[(count, -(-channels // block), batch)](
        h, bias, first, second, h if kernel is None else kernel, out, voxels, channels, count, chunk_rows(voxels),
        inner[0], inner[1] if len(inner) > 1 else 0, kernel is not None, ROWS, block, columns(max(*inner, 1)),
    )  # fmt: skip
    return h, out
