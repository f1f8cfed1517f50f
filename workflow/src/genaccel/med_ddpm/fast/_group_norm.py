"""Triton kernels behind ``group_norm``, which documents their arguments."""

import triton
import triton.language as tl


@triton.jit
def _tile(row, column, voxels, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = row + tl.arange(0, ROWS)
    cols = column + tl.arange(0, COLUMNS)
    return rows, cols, (rows < voxels)[:, None] & (cols < channels)[None, :]


@triton.jit
def group_norm_moments(
    x,
    bias,
    out,
    voxels,
    channels,
    count,
    CHUNK: tl.constexpr,
    ADD: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    batch = tl.program_id(2).to(tl.int64)
    start = tl.program_id(0) * CHUNK
    end = tl.minimum(start + CHUNK, voxels)
    x += batch * voxels * channels
    _, cols, mask = _tile(start, tl.program_id(1) * COLUMNS, voxels, channels, ROWS, COLUMNS)
    added = tl.zeros([COLUMNS], tl.float32)
    if ADD:
        added += tl.load(bias + cols, mask=cols < channels, other=0).to(tl.float32)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    squares = tl.zeros([ROWS, COLUMNS], tl.float32)
    centre = tl.zeros([COLUMNS], tl.float32)
    for i in range(0, CHUNK, ROWS):
        row = start + i
        rows, cols, mask = _tile(row, tl.program_id(1) * COLUMNS, end, channels, ROWS, COLUMNS)
        at = x + rows.to(tl.int64)[:, None] * channels + cols[None, :]
        value = tl.load(at, mask=mask, other=0).to(tl.float32)
        if ADD:
            value += added[None, :]
            rounded = value.to(x.dtype.element_ty)
            tl.store(at, rounded, mask=mask)
            value = rounded.to(tl.float32)
        if i == 0:
            # Deviations from the first tile's mean: sums of plain squares would drown a small variance.
            centre = tl.sum(tl.where(mask, value, 0), 0) / tl.minimum(ROWS, end - start)
        value = tl.where(mask, value - centre[None, :], 0)
        sums += value
        squares += value * value
    n = (end - start).to(tl.float32)
    total = tl.sum(sums, 0)
    out += ((batch * count + tl.program_id(0)) * 2) * channels + cols
    tl.store(out, centre + total / n, mask=cols < channels)
    tl.store(out + channels, tl.maximum(tl.sum(squares, 0) - total * total / n, 0), mask=cols < channels)


@triton.jit
def _channel_moments(
    first, second, voxels, split, channels, count, chunk, batch, c, inside, COUNT: tl.constexpr, SIZE: tl.constexpr
):
    """Mean and squared deviations of each channel in a group, from one volume or the next."""
    i = tl.arange(0, COUNT)[:, None]
    rows = tl.minimum(chunk, voxels - i * chunk).to(tl.float32)
    rows = tl.where(i < count, rows, 0)
    in_first = (c < split) & inside
    in_second = (c >= split) & inside
    here = (i < count) & in_first[None, :]
    there = (i < count) & in_second[None, :]
    rest = channels - split
    at = first + ((batch * count + i) * 2) * split + c[None, :]
    to = second + ((batch * count + i) * 2) * rest + (c - split)[None, :]
    means = tl.load(at, mask=here, other=0) + tl.load(to, mask=there, other=0)
    squares = tl.load(at + split, mask=here, other=0) + tl.load(to + rest, mask=there, other=0)
    mean = tl.sum(means * rows, 0) / voxels
    deviation = means - mean[None, :]
    return mean, tl.sum(squares + rows * deviation * deviation, 0)


@triton.jit
def group_norm_coefficients(
    first, second, shift, weight, bias, out, voxels, split, channels, batches, count, chunk, size, eps,
    SHIFT: tl.constexpr, COUNT: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1)
    j = tl.arange(0, SIZE)
    c = tl.program_id(0) * size + j
    inside = j < size
    mean, squares = _channel_moments(
        first, second, voxels, split, channels, count, chunk, batch, c, inside, COUNT, SIZE
    )
    added = tl.zeros([SIZE], tl.float32)
    if SHIFT:
        added += tl.load(shift + batch * channels + c, mask=inside, other=0)
    shifted = tl.where(inside, mean + added, 0)
    centre = tl.sum(shifted) / size
    deviation = tl.where(inside, shifted - centre, 0)
    variance = tl.sum(tl.where(inside, squares, 0)) / voxels / size + tl.sum(deviation * deviation) / size
    rstd = 1 / tl.sqrt(variance + eps)
    scale = tl.load(weight + c, mask=inside, other=0) * rstd
    offset = tl.load(bias + c, mask=inside, other=0) + (added - centre) * scale
    out += batch * channels + c
    step = batches * channels
    tl.store(out, scale, mask=inside)
    tl.store(out + step, offset, mask=inside)
    tl.store(out + 2 * step, added - centre, mask=inside)
    tl.store(out + 3 * step, tl.zeros([SIZE], tl.float32) + rstd, mask=inside)


@triton.jit
def group_norm_normalise(
    x, scale, offset, out, voxels, channels, width, column,
    SILU: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    rows, cols, mask = _tile(tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS, voxels, channels, ROWS, COLUMNS)
    rows = rows.to(tl.int64)[:, None]
    value = tl.load(x + (batch * voxels + rows) * channels + cols[None, :], mask=mask, other=0).to(tl.float32)
    at = batch * width + column + cols
    a = tl.load(scale + at, mask=cols < channels, other=0)
    b = tl.load(offset + at, mask=cols < channels, other=0)
    z = value * a[None, :] + b[None, :]
    if SILU:
        z = z * tl.sigmoid(z)
    tl.store(out + (batch * voxels + rows) * width + column + cols[None, :], z.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _dz(dy, z, SILU: tl.constexpr):
    if SILU:
        s = tl.sigmoid(z)
        dy = dy * s * (1 + z * (1 - s))
    return dy


@triton.jit
def group_norm_backward_sums(
    dy, x, scale, offset, out, normalised, voxels, channels, width, column, count,
    CHUNK: tl.constexpr, SILU: tl.constexpr, WRITE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    start = tl.program_id(0) * CHUNK
    end = tl.minimum(start + CHUNK, voxels)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at = batch * width + column + cols
    a = tl.load(scale + at, mask=cols < channels, other=0)
    b = tl.load(offset + at, mask=cols < channels, other=0)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    product = tl.zeros([ROWS, COLUMNS], tl.float32)
    for i in range(0, CHUNK, ROWS):
        row = start + i
        rows, cols, mask = _tile(row, tl.program_id(1) * COLUMNS, end, channels, ROWS, COLUMNS)
        rows = batch * voxels + rows.to(tl.int64)[:, None]
        value = tl.load(x + rows * channels + cols[None, :], mask=mask, other=0).to(tl.float32)
        gradient = tl.load(dy + rows * width + column + cols[None, :], mask=mask, other=0).to(tl.float32)
        z = value * a[None, :] + b[None, :]
        dz = _dz(gradient, z, SILU)
        total += dz
        product += dz * value
        if WRITE:
            y = z * tl.sigmoid(z) if SILU else z
            tl.store(normalised + rows * width + column + cols[None, :], y.to(normalised.dtype.element_ty), mask=mask)
    out += ((batch * count + tl.program_id(0)) * 2) * width + column + cols
    tl.store(out, tl.sum(total, 0), mask=cols < channels)
    tl.store(out + width, tl.sum(product, 0), mask=cols < channels)


@triton.jit
def group_norm_backward_coefficients(
    sums, first, second, scale, centre, rstd, weight, out, voxels, split, channels, batches, count, chunk, size,
    COUNT: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(1)
    j = tl.arange(0, SIZE)
    c = tl.program_id(0) * size + j
    inside = j < size
    i = tl.arange(0, COUNT)[:, None]
    at = sums + ((batch * count + i) * 2) * channels + c[None, :]
    mask = (i < count) & inside[None, :]
    total = tl.sum(tl.load(at, mask=mask, other=0), 0)
    product = tl.sum(tl.load(at + channels, mask=mask, other=0), 0)
    here = batch * channels + c
    a = tl.load(scale + here, mask=inside, other=0)
    deviation = tl.load(centre + here, mask=inside, other=0)
    inverse = tl.load(rstd + here, mask=inside, other=0)
    w = tl.load(weight + c, mask=inside, other=0)
    d_weight = inverse * (product + deviation * total)
    by = voxels.to(tl.float32) * size
    slope = -inverse * inverse * (tl.sum(w * d_weight) / by)
    level = slope * deviation - inverse * (tl.sum(w * total) / by)
    mean, _ = _channel_moments(first, second, voxels, split, channels, count, chunk, batch, c, inside, COUNT, SIZE)
    out += here
    step = batches * channels
    tl.store(out, slope, mask=inside)
    tl.store(out + step, level, mask=inside)
    tl.store(out + 2 * step, d_weight, mask=inside)
    tl.store(out + 3 * step, total, mask=inside)
    tl.store(out + 4 * step, a * total + voxels * (slope * mean + level), mask=inside)


@triton.jit
def group_norm_backward_apply(
    dy, x, scale, offset, slope, level, extra, more, into, kernel, dx, voxels, channels, width, column,
    kernel_width, WIDTH: tl.constexpr, SILU: tl.constexpr, EXTRA: tl.constexpr, PROJECTED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    rows, cols, mask = _tile(tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS, voxels, channels, ROWS, COLUMNS)
    valid = rows < voxels
    rows = batch * voxels + rows.to(tl.int64)[:, None]
    value = tl.load(x + rows * channels + cols[None, :], mask=mask, other=0).to(tl.float32)
    gradient = tl.load(dy + rows * width + column + cols[None, :], mask=mask, other=0).to(tl.float32)
    at = batch * width + column + cols
    inside = cols < channels
    a = tl.load(scale + at, mask=inside, other=0)
    b = tl.load(offset + at, mask=inside, other=0)
    p = tl.load(slope + at, mask=inside, other=0)
    q = tl.load(level + at, mask=inside, other=0)
    dz = _dz(gradient, value * a[None, :] + b[None, :], SILU)
    result = dz * a[None, :] + value * p[None, :] + q[None, :]
    here = rows * channels + cols[None, :]
    if EXTRA >= 1:
        result += tl.load(extra + here, mask=mask, other=0).to(tl.float32)
    if EXTRA >= 2:
        result += tl.load(more + here, mask=mask, other=0).to(tl.float32)
    if PROJECTED:
        for k in range(0, WIDTH, INNER):
            ks = k + tl.arange(0, INNER)
            left = tl.load(into + rows * WIDTH + ks[None, :], mask=valid[:, None] & (ks < WIDTH)[None, :], other=0)
            right = tl.load(
                kernel + ks[:, None] * kernel_width + column + cols[None, :],
                mask=(ks < WIDTH)[:, None] & inside[None, :],
                other=0,
            )
            result = tl.dot(left, right, result, input_precision="ieee")
    tl.store(dx + here, result.to(dx.dtype.element_ty), mask=mask)
