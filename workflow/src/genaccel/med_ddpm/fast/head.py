"""The last norm, SiLU and convolution, with one or a few output channels, as products with narrow matrices.

A convolution to one channel does 1/64 of the work that the library's kernels are made for. Here the normalised
volume, never stored, is projected to 27 numbers a voxel and output channel, one for each neighbour, which a second
kernel adds up where they belong. The backward gathers the output's gradient into the same 27 columns.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import ROWS, chunk_rows, chunks, columns, triton_runs
from genaccel.med_ddpm.fast.convolution import Sides
from genaccel.med_ddpm.fast.group_norm import Coefficients, Gradients
from genaccel.med_ddpm.fast.patches import MULTIPLE, patches


def head(x: Tensor, sides: Sides, c: Coefficients, kernel: Tensor, bias: Tensor) -> Tensor:
    """``conv(silu(x * scale + offset)) + bias``.

    Args:
        x: (B, V, C).
        sides: D, H, W.
        c: coefficients of ``x``'s GroupNorm.
        kernel: (27, K, C), neighbours in the order d, h, w; in the dtype of ``x``; contiguous.
        bias: (K,) FP32.

    Returns:
        (B, K, D, H, W) FP32.
    """
    batch, voxels, channels = x.shape
    outputs = kernel.shape[1]
    if not triton_runs(x):
        n = F.silu(x.float() * c.scale[:, None] + c.offset[:, None]).transpose(1, 2).unflatten(-1, sides)
        return F.conv3d(n, as_5d(kernel.float()), bias, padding=1)
    from genaccel.med_ddpm.fast import _head

    width, step = 27 * outputs, 32
    # Half precision's 11 bits, not BF16's 8: these numbers are of order one and 27 of them are added up.
    projected_dtype = torch.float32 if x.dtype == torch.float32 else torch.float16
    projected = torch.empty(batch, width, voxels, dtype=projected_dtype, device=x.device)
    block = columns(channels)
    _head.head_project[(-(-voxels // ROWS), -(-width // step), batch)](
        x, c.scale, c.offset, kernel, projected, voxels, channels, width, -(-channels // block) * block, ROWS, step,
        block,
    )  # fmt: skip
    y = torch.empty(batch, outputs, *sides, device=x.device)
    _head.head_gather[(-(-voxels // _head.VOXELS), outputs, batch)](
        projected, bias, y, voxels, *sides, outputs, _head.VOXELS
    )
    return y


def near_gradient(dy: Tensor, dtype: torch.dtype) -> Tensor:
    """The gradient of ``head``'s result at what each voxel reaches, (B, K, D, H, W) FP32 -> (B, V, columns)."""
    # A tile of a kernel holds all columns, and its sides are powers of two.
    return patches(dy, dtype, sign=-1, width=max(MULTIPLE, 1 << (27 * dy.shape[1] - 1).bit_length()))


def head_backward_sums(near: Tensor, x: Tensor, c: Coefficients, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """First pass of the backward.

    Args:
        near: from ``near_gradient``.
        x: (B, V, C), c: its coefficients, kernel: (27, K, C), as in ``head``.

    Returns:
        Sums as ``group_norm.backward_sums`` gives them, (B, chunks, 2, C), and the kernel's gradient, (27, K, C) FP32.
    """
    batch, voxels, channels = x.shape
    outputs, width = kernel.shape[1], near.shape[-1]
    if not triton_runs(x):
        n, dz = _dz(near, x, c, kernel)
        sums = torch.stack([dz.sum(1), (dz * x.float()).sum(1)], 1)[:, None]
        gradient = near.flatten(0, 1).float().t() @ n.flatten(0, 1)
        return sums, gradient[: 27 * outputs].unflatten(0, (27, outputs))
    from genaccel.med_ddpm.fast import _head

    count, block = chunks(voxels), columns(channels)
    sums = torch.empty(batch, count, 2, channels, device=x.device)
    parts = torch.empty(batch, count, width, channels, device=x.device)
    _head.head_backward_sums[(count, -(-channels // block), batch)](
        near, x, c.scale, c.offset, _filled(kernel, width), sums, parts, voxels, channels, count, chunk_rows(voxels),
        width, ROWS, block,
    )  # fmt: skip
    return sums, parts.sum((0, 1))[: 27 * outputs].unflatten(0, (27, outputs))


def head_backward_apply(near: Tensor, x: Tensor, c: Coefficients, g: Gradients, kernel: Tensor) -> Tensor:
    """Second pass: the gradient of ``x``, (B, V, C) in its dtype."""
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        _, dz = _dz(near, x, c, kernel)
        return (dz * c.scale[:, None] + x.float() * g.slope[:, None] + g.level[:, None]).to(x.dtype)
    from genaccel.med_ddpm.fast import _head

    width, block = near.shape[-1], columns(channels)
    dx = torch.empty_like(x)
    rows = ROWS // 2
    _head.head_backward_apply[(-(-voxels // rows), -(-channels // block), batch)](
        near, x, c.scale, c.offset, g.slope, g.level, _filled(kernel, width), dx, voxels, channels, width, rows, block,
    )  # fmt: skip
    return dx


def as_5d(kernel: Tensor) -> Tensor:
    """(27, K, C) as a convolution's kernel, (K, C, 3, 3, 3)."""
    return kernel.unflatten(0, (3, 3, 3)).permute(3, 4, 0, 1, 2)


def _filled(kernel: Tensor, width: int) -> Tensor:
    """(27, K, C) as a matrix with as many rows as ``patches`` has columns, a power of two for the kernel's tiles."""
    return F.pad(kernel.flatten(0, 1), (0, 0, 0, width - 27 * kernel.shape[1])).contiguous()


def _dz(near: Tensor, x: Tensor, c: Coefficients, kernel: Tensor) -> tuple[Tensor, Tensor]:
    z = x.float() * c.scale[:, None] + c.offset[:, None]
    dn = near.float() @ _filled(kernel, near.shape[-1]).float()
    s = torch.sigmoid(z)
    return z * s, dn * s * (1 + z * (1 - s))
