"""GroupNorm and SiLU in two passes over channels-last volumes, each a split reduction that fills the GPU.

PyTorch's GroupNorm starts one block a group: at batch 1 a quarter of a GPU. Here a volume is cut into chunks of
voxels. ``moments`` leaves mean and squared deviation of each chunk and channel, ``coefficients`` merges them
into one scale and offset a channel, and ``normalise`` applies these in one pass. What is constant over a
channel (the convolution's bias, the step embedding) goes into ``coefficients`` and costs no memory traffic.

Volumes are (B, V, C), BF16 or FP32, contiguous: V voxels in the order D, H, W. Statistics are FP32.

Sources: Wu and He, Group Normalization, ECCV 2018, eqs. 1-4; Chan et al., Algorithms for Computing the Sample
Variance, The American Statistician 1983, eq. 1.4 (merging chunks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.chunks import ROWS, chunk_rows, chunks, columns, triton_runs

EPS = 1e-5

HALF = ROWS // 2
"""Voxels held at a time by kernels that keep several tiles of them: with the warps below, the best of those tried."""


class Coefficients(NamedTuple):
    """GroupNorm as ``x * scale + offset``, and what its backward pass needs."""

    scale: Tensor
    """(B, C): weight / standard deviation."""
    offset: Tensor
    """(B, C)."""
    centre: Tensor
    """(B, C): shift of the channel minus the group's mean, so that the deviation is x + centre."""
    rstd: Tensor
    """(B, C): 1 / standard deviation of the channel's group."""


class Gradients(NamedTuple):
    """What ``backward_coefficients`` finds: the gradient is ``dz * scale + x * slope + level``."""

    slope: Tensor
    """(B, C)."""
    level: Tensor
    """(B, C)."""
    weight: Tensor
    """(B, C): gradient of GroupNorm's weight, a volume at a time."""
    bias: Tensor
    """(B, C): gradient of GroupNorm's bias, a volume at a time."""
    shift: Tensor
    """(B, C): gradient of the channel's shift, the sum of the input's gradient over voxels."""


def moments(x: Tensor, bias: Tensor | None = None) -> Tensor:
    """Mean and sum of squared deviations of each chunk and channel.

    Args:
        x: (B, V, C).
        bias: (C,), added to ``x`` in place first.

    Returns:
        (B, chunks, 2, C) FP32.
    """
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        if bias is not None:
            x += bias.to(x.dtype)
        wide = x.float()
        mean = wide.mean(1)
        return torch.stack([mean, (wide - mean[:, None]).square().sum(1)], 1)[:, None]
    from genaccel.med_ddpm.fast import _group_norm

    count, block = chunks(voxels), columns(channels)
    out = torch.empty(batch, count, 2, channels, device=x.device)
    _group_norm.group_norm_moments[(count, -(-channels // block), batch)](
        x,
        x if bias is None else bias,
        out,
        voxels,
        channels,
        count,
        chunk_rows(voxels),
        bias is not None,
        HALF,
        block,
        num_warps=8,
    )
    return out


def coefficients(
    sources: Sequence[Tensor], voxels: int, weight: Tensor, bias: Tensor, groups: int, shift: Tensor | None = None
) -> Coefficients:
    """GroupNorm's scale and offset of each channel.

    Args:
        sources: ``moments`` of the one or two volumes whose channels are normalised as one.
        voxels: V.
        weight: (C,) FP32, GroupNorm's.
        bias: (C,) FP32, GroupNorm's.
        groups: they divide C.
        shift: (B, C) FP32, a constant of each channel that counts as added to the volume.
    """
    batch, channels = len(sources[0]), len(weight)
    if not triton_runs(weight):
        return _coefficients(sources, voxels, weight, bias, groups, shift)
    from genaccel.med_ddpm.fast import _group_norm

    out = torch.empty(4, batch, channels, device=weight.device)
    first, second = sources[0], sources[-1]
    added = weight if shift is None else shift.contiguous()
    count, size = first.shape[1], channels // groups
    _group_norm.group_norm_coefficients[(groups, batch)](
        first, second, added, weight, bias, out, voxels, first.shape[-1], channels, batch, count,
        chunk_rows(voxels), size, EPS, shift is not None, _power(count), _power(size),
    )  # fmt: skip
    return Coefficients(*out)


def normalise(x: Tensor, c: Coefficients, out: Tensor, column: int, silu: bool = True) -> None:
    """Writes ``silu(x * scale + offset)`` into channels ``column...`` of ``out``.

    Args:
        x: (B, V, C).
        c: coefficients of all channels of ``out``.
        out: (B, V, at least column + C), written.
        silu: whether SiLU follows.
    """
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        here = slice(column, column + channels)
        z = x.float() * c.scale[:, None, here] + c.offset[:, None, here]
        out[:, :, here] = F.silu(z) if silu else z
        return
    from genaccel.med_ddpm.fast import _group_norm

    block = columns(channels)
    _group_norm.group_norm_normalise[(-(-voxels // ROWS), -(-channels // block), batch)](
        x, c.scale, c.offset, out, voxels, channels, out.shape[-1], column, silu, ROWS, block, num_warps=4
    )


def backward_sums(
    dy: Tensor, x: Tensor, c: Coefficients, column: int, sums: Tensor, normalised: Tensor | None, silu: bool = True
) -> None:
    """First pass of the backward: sums of dz and dz * x over each chunk, where z = x * scale + offset.

    Args:
        dy: (B, V, C'), gradient of the normalised volume; ``x`` takes channels ``column...`` of it.
        x: (B, V, C).
        sums: (B, chunks, 2, C') FP32, written in the same channels; from ``empty_sums``.
        normalised: (B, V, C'), written with the normalised volume: computing it again costs one write, keeping
            it from the forward pass would cost its memory all the while.
    """
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        here = slice(column, column + channels)
        z = x.float() * c.scale[:, None, here] + c.offset[:, None, here]
        dz = _dz(dy[:, :, here].float(), z, silu)
        sums[:, 0, 0, here], sums[:, 0, 1, here] = dz.sum(1), (dz * x.float()).sum(1)
        if normalised is not None:
            normalised[:, :, here] = F.silu(z) if silu else z
        return
    from genaccel.med_ddpm.fast import _group_norm

    count, block = chunks(voxels), columns(channels)
    _group_norm.group_norm_backward_sums[(count, -(-channels // block), batch)](
        dy, x, c.scale, c.offset, sums, dy if normalised is None else normalised, voxels, channels, dy.shape[-1],
        column, count, chunk_rows(voxels), silu, normalised is not None, HALF, block, num_warps=8,
    )  # fmt: skip


def empty_sums(dy: Tensor) -> Tensor:
    """The array that ``backward_sums`` writes; (B, chunks, 2, C) FP32."""
    batch, voxels, channels = dy.shape
    count = chunks(voxels) if triton_runs(dy) else 1
    return torch.empty(batch, count, 2, channels, device=dy.device)


def backward_coefficients(
    sums: Tensor, sources: Sequence[Tensor], voxels: int, c: Coefficients, weight: Tensor, groups: int
) -> Gradients:
    """Merges the chunks of ``backward_sums`` into the gradients of weight, bias and shift, and those of the volume.

    Args:
        sums: (B, chunks, 2, C).
        sources: the ``moments`` that ``c`` was made of.
        weight: (C,) FP32, GroupNorm's.
    """
    batch, _, _, channels = sums.shape
    if not triton_runs(sums):
        return _backward_coefficients(sums, sources, voxels, c, weight, groups)
    from genaccel.med_ddpm.fast import _group_norm

    out = torch.empty(5, batch, channels, device=sums.device)
    first, second = sources[0], sources[-1]
    count, size = sums.shape[1], channels // groups
    _group_norm.group_norm_backward_coefficients[(groups, batch)](
        sums, first, second, c.scale, c.centre, c.rstd, weight, out, voxels, first.shape[-1], channels, batch, count,
        chunk_rows(voxels), size, _power(count), _power(size),
    )  # fmt: skip
    return Gradients(*out)


def backward_apply(
    dy: Tensor,
    x: Tensor,
    c: Coefficients,
    g: Gradients,
    column: int,
    extra: Sequence[Tensor] = (),
    projected: tuple[Tensor, Tensor] | None = None,
    silu: bool = True,
) -> Tensor:
    """Second pass of the backward: the gradient of ``x``, with what else reaches ``x`` added in the same pass.

    Args:
        extra: up to two gradients of ``x`` from elsewhere, (B, V, C) each.
        projected: gradient of a 1x1 convolution's output and its kernel: (B, V, K) and (K, C'); adds their
            product in the channels of ``x``.

    Returns:
        (B, V, C), in the dtype of ``x``.
    """
    batch, voxels, channels = x.shape
    if not triton_runs(x):
        here = slice(column, column + channels)
        z = x.float() * c.scale[:, None, here] + c.offset[:, None, here]
        dx = _dz(dy[:, :, here].float(), z, silu) * c.scale[:, None, here]
        dx = dx + x.float() * g.slope[:, None, here] + g.level[:, None, here]
        for gradient in extra:
            dx = dx + gradient.float()
        if projected:
            dx = dx + projected[0].float() @ projected[1][:, here].float()
        return dx.to(x.dtype)
    from genaccel.med_ddpm.fast import _group_norm

    block = columns(channels)
    dx = torch.empty_like(x)
    into, kernel = projected or (dy, dy)
    rows = ROWS if projected else HALF
    _group_norm.group_norm_backward_apply[(-(-voxels // rows), -(-channels // block), batch)](
        dy, x, c.scale, c.offset, g.slope, g.level, extra[0] if extra else dy, extra[1] if len(extra) > 1 else dy,
        into, kernel, dx, voxels, channels, dy.shape[-1], column, kernel.shape[-1], into.shape[-1], silu, len(extra),
        projected is not None, rows, block, columns(into.shape[-1]), num_warps=8 if projected else 4,
    )  # fmt: skip
    return dx


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _dz(dy: Tensor, z: Tensor, silu: bool) -> Tensor:
    if not silu:
        return dy
    s = torch.sigmoid(z)
    return dy * s * (1 + z * (1 - s))


def _merged(sources: Sequence[Tensor], voxels: int) -> tuple[Tensor, Tensor]:
    """Mean and sum of squared deviations of each channel, (B, C) each."""
    means, squares = [], []
    for m in sources:
        rows = torch.full((m.shape[1],), chunk_rows(voxels), device=m.device)
        rows[-1] = voxels - chunk_rows(voxels) * (m.shape[1] - 1)
        if m.shape[1] == 1:
            rows[0] = voxels
        rows = rows[None, :, None].float()
        mean = (m[:, :, 0] * rows).sum(1) / voxels
        means.append(mean)
        squares.append(m[:, :, 1].sum(1) + (rows * (m[:, :, 0] - mean[:, None]).square()).sum(1))
    return torch.cat(means, -1), torch.cat(squares, -1)


def _coefficients(sources, voxels, weight, bias, groups, shift) -> Coefficients:
    mean, squares = _merged(sources, voxels)
    shift = torch.zeros_like(mean) if shift is None else shift
    shifted = (mean + shift).unflatten(-1, (groups, -1))
    centre = shifted.mean(-1, keepdim=True)
    size = shifted.shape[-1]
    variance = squares.unflatten(-1, (groups, -1)).sum(-1, keepdim=True) / (voxels * size)
    variance = variance + (shifted - centre).square().mean(-1, keepdim=True)
    rstd = torch.rsqrt(variance + EPS).expand_as(shifted).flatten(1)
    centre = shift - centre.expand_as(shifted).flatten(1)
    scale = weight * rstd
    return Coefficients(scale, bias + centre * scale, centre, rstd)


def _backward_coefficients(sums, sources, voxels, c, weight, groups) -> Gradients:
    total, product = sums.sum(1).unbind(1)
    d_weight = c.rstd * (product + c.centre * total)
    size = total.shape[-1] // groups

    def over_group(value: Tensor) -> Tensor:
        mean = value.unflatten(-1, (groups, -1)).sum(-1, keepdim=True) / (voxels * size)
        return mean.expand(-1, -1, size).flatten(1)

    slope = -c.rstd.square() * over_group(weight * d_weight)
    level = slope * c.centre - c.rstd * over_group(weight * total)
    mean, _ = _merged(sources, voxels)
    return Gradients(slope, level, d_weight, total, c.scale * total + voxels * (slope * mean + level))
