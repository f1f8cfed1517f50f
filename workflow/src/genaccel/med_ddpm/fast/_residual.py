"""Triton kernel behind ``residual``, which documents its arguments."""

import triton
import triton.language as tl


@triton.jit
def _product(
    result, source, kernel, rows, valid, cols, channels, width, column, WIDTH: tl.constexpr, INNER: tl.constexpr
):
    """``result + source @ kernel.T`` for a tile, over ``WIDTH`` columns of the kernel from ``column`` on."""
    for k in range(0, WIDTH, INNER):
        ks = k + tl.arange(0, INNER)
        left = tl.load(source + rows * WIDTH + ks[None, :], mask=valid[:, None] & (ks < WIDTH)[None, :], other=0)
        right = tl.load(
            kernel + cols[None, :] * width + column + ks[:, None],
            mask=(cols < channels)[None, :] & (ks < WIDTH)[:, None],
            other=0,
        )
        result = tl.dot(left, right, result, input_precision="ieee")
    return result


@triton.jit
def residual_end(
    h, bias, first, second, kernel, out, voxels, channels, count,
    CHUNK: tl.constexpr, WIDTH: tl.constexpr, MORE: tl.constexpr, PROJECTED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    start = tl.program_id(0) * CHUNK
    end = tl.minimum(start + CHUNK, voxels)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = cols < channels
    added = tl.load(bias + cols, mask=inside, other=0).to(tl.float32)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    centre = tl.zeros([COLUMNS], tl.float32)
    for i in range(0, CHUNK, ROWS):
        row = start + i
        rows = row + tl.arange(0, ROWS)
        valid = rows < end
        mask = valid[:, None] & inside[None, :]
        rows = batch * voxels + rows.to(tl.int64)[:, None]
        at = rows * channels + cols[None, :]
        value = tl.load(h + at, mask=mask, other=0).to(tl.float32) + added[None, :]
        if PROJECTED:
            value = _product(value, first, kernel, rows, valid, cols, channels, WIDTH + MORE, 0, WIDTH, INNER)
            value = _product(value, second, kernel, rows, valid, cols, channels, WIDTH + MORE, WIDTH, MORE, INNER)
        else:
            value += tl.load(first + at, mask=mask, other=0).to(tl.float32)
        rounded = value.to(h.dtype.element_ty)
        tl.store(h + at, rounded, mask=mask)
        value = rounded.to(tl.float32)
        if i == 0:
            centre = tl.sum(tl.where(mask, value, 0), 0) / tl.minimum(ROWS, end - start)
        value = tl.where(mask, value - centre[None, :], 0)
        sums += value
        squares += value * value
    n = (end - start).to(tl.float32)
    total = tl.sum(sums, 0)
    out += ((batch * count + tl.program_id(0)) * 2) * channels + cols
    tl.store(out, centre + total / n, mask=inside)
    tl.store(out + channels, tl.maximum(tl.sum(squares, 0) - total * total / n, 0), mask=inside)
