"""Triton kernels behind ``upsample``."""

import triton
import triton.language as tl

ROWS = 32
"""Voxels a program of the forward writes."""

FEW = 16
"""The same of the backward, which has 64 loads in flight for each."""


@triton.jit
def upsample_forward(x, out, depth, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    voxels = depth * height * width
    mask = (rows < 8 * voxels)[:, None] & (cols < channels)[None, :]
    w = rows % (2 * width)
    h = rows // (2 * width) % (2 * height)
    d = rows // (4 * width * height)
    result = tl.zeros([ROWS, COLUMNS], tl.float32)
    for corner in tl.static_range(8):
        # The nearer voxel is the half of the index; the farther lies on the side that its parity says.
        nd, nh, nw = d // 2, h // 2, w // 2
        weight = tl.full([ROWS], 1.0, tl.float32)
        if corner & 4:
            nd = tl.minimum(tl.maximum(nd + (d % 2) * 2 - 1, 0), depth - 1)
            weight *= 0.25
        else:
            weight *= 0.75
        if corner & 2:
            nh = tl.minimum(tl.maximum(nh + (h % 2) * 2 - 1, 0), height - 1)
            weight *= 0.25
        else:
            weight *= 0.75
        if corner & 1:
            nw = tl.minimum(tl.maximum(nw + (w % 2) * 2 - 1, 0), width - 1)
            weight *= 0.25
        else:
            weight *= 0.75
        source = batch * voxels + ((nd * height + nh) * width + nw).to(tl.int64)
        value = tl.load(x + source[:, None] * channels + cols[None, :], mask=mask, other=0).to(tl.float32)
        result += weight[:, None] * value
    at = (batch * 8 * voxels + rows.to(tl.int64))[:, None] * channels + cols[None, :]
    tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _tap(index, side, tap: tl.constexpr):
    """Output index of a tap (-1, 0, 1, 2 from twice the input index) and its weight along one axis."""
    o = 2 * index + tap
    valid = (o >= 0) & (o < 2 * side)
    if (tap == 0) | (tap == 1):
        weight = tl.full(index.shape, 0.75, tl.float32)
        # At the border the farther voxel is the border itself, which so gets the last quarter too.
        weight += tl.where((o == 0) | (o == 2 * side - 1), 0.25, 0.0)
    else:
        weight = tl.full(index.shape, 0.25, tl.float32)
    return o, tl.where(valid, weight, 0.0)


@triton.jit
def upsample_backward(dy, dx, depth, height, width, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    voxels = depth * height * width
    inside = (rows < voxels)[:, None] & (cols < channels)[None, :]
    w = rows % width
    h = rows // width % height
    d = rows // (width * height)
    result = tl.zeros([ROWS, COLUMNS], tl.float32)
    for i in tl.static_range(4):
        od, wd = _tap(d, depth, i - 1)
        for j in tl.static_range(4):
            oh, wh = _tap(h, height, j - 1)
            for k in tl.static_range(4):
                ow, ww = _tap(w, width, k - 1)
                weight = wd * wh * ww
                source = batch * 8 * voxels + ((od * 2 * height + oh) * 2 * width + ow).to(tl.int64)
                at = dy + source[:, None] * channels + cols[None, :]
                value = tl.load(at, mask=inside & (weight > 0)[:, None], other=0).to(tl.float32)
                result += weight[:, None] * value
    to = (batch * voxels + rows.to(tl.int64))[:, None] * channels + cols[None, :]
    tl.store(dx + to, result.to(dx.dtype.element_ty), mask=inside)
