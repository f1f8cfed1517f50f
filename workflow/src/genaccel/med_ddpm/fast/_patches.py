"""Triton kernel behind ``patches``."""

import triton
import triton.language as tl

VOXELS = 32
"""Voxels a program gathers the neighbours of."""


@triton.jit
def _bits(a, b, c, d, e, f):
    low = tl.where(a, 1, 0) | tl.where(b, 2, 0) | tl.where(c, 4, 0)
    return low | tl.where(d, 8, 0) | tl.where(e, 16, 0) | tl.where(f, 32, 0)


@triton.jit
def patches_gather(
    x, out, voxels, depth, height, breadth, width,
    CHANNELS: tl.constexpr, SIGN: tl.constexpr, VOXELS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    v = tl.program_id(0) * VOXELS + tl.arange(0, VOXELS)
    k = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    d = v // (height * breadth)
    h = v // breadth % height
    w = v % breadth
    tap = k // CHANNELS
    dd, dh, dw = SIGN * (tap // 9 - 1), SIGN * (tap // 3 % 3 - 1), SIGN * (tap % 3 - 1)
    # One bit a border: a neighbour that steps over it meets the voxels that lie at it. This leaves one
    # instruction an element where comparing coordinates would take a dozen.
    borders = _bits(d == 0, d == depth - 1, h == 0, h == height - 1, w == 0, w == breadth - 1) | 64
    borders = borders | tl.where(v >= voxels, 128, 0)
    steps = _bits(dd < 0, dd > 0, dh < 0, dh > 0, dw < 0, dw > 0) | 128
    steps = steps | tl.where(k >= 27 * CHANNELS, 64, 0)
    offset = ((k % CHANNELS * depth + dd) * height + dh) * breadth + dw
    # Voxels along the last axis, so that a warp reads neighbours in memory.
    inside = (steps[:, None] & borders[None, :]) == 0
    near = tl.load(x + batch * voxels * CHANNELS + (offset[:, None] + v[None, :]), mask=inside, other=0)
    to = out + (batch * voxels + v.to(tl.int64))[:, None] * width + k[None, :]
    tl.store(to, tl.trans(near).to(out.dtype.element_ty), mask=(v < voxels)[:, None] & (k < width)[None, :])
