"""Triton kernels behind ``head``, which documents their arguments."""

import triton
import triton.language as tl

VOXELS = 512
"""Voxels a program of ``head_gather`` adds up."""


@triton.jit
def head_project(
    x, scale, offset, kernel, projected, voxels, channels, width,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    valid = rows < voxels
    js = tl.program_id(1) * STEP + tl.arange(0, STEP)
    result = tl.zeros([ROWS, STEP], tl.float32)
    for column in range(0, CHANNELS, COLUMNS):
        cols = column + tl.arange(0, COLUMNS)
        inside = cols < channels
        at = (batch * voxels + rows.to(tl.int64))[:, None] * channels + cols[None, :]
        value = tl.load(x + at, mask=valid[:, None] & inside[None, :], other=0).to(tl.float32)
        a = tl.load(scale + batch * channels + cols, mask=inside, other=0)
        b = tl.load(offset + batch * channels + cols, mask=inside, other=0)
        z = value * a[None, :] + b[None, :]
        n = (z * tl.sigmoid(z)).to(x.dtype.element_ty)
        right = tl.load(
            kernel + js[None, :] * channels + cols[:, None], mask=(js < width)[None, :] & inside[:, None], other=0
        )
        result = tl.dot(n, right, result, input_precision="ieee")
    to = (batch * width + js.to(tl.int64))[None, :] * voxels + rows[:, None]
    tl.store(projected + to, result.to(projected.dtype.element_ty), mask=valid[:, None] & (js < width)[None, :])


@triton.jit
def head_gather(projected, bias, y, voxels, depth, height, breadth, outputs, VOXELS: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    output = tl.program_id(1)
    v = tl.program_id(0) * VOXELS + tl.arange(0, VOXELS)
    valid = v < voxels
    d = v // (height * breadth)
    h = v // breadth % height
    w = v % breadth
    result = tl.zeros([VOXELS], tl.float32) + tl.load(bias + output)
    for tap in tl.static_range(27):
        nd, nh, nw = d + tap // 9 - 1, h + tap // 3 % 3 - 1, w + tap % 3 - 1
        inside = (nd >= 0) & (nd < depth) & (nh >= 0) & (nh < height) & (nw >= 0) & (nw < breadth) & valid
        at = ((batch * 27 + tap) * outputs + output) * voxels + (nd * height + nh) * breadth + nw
        result += tl.load(projected + at, mask=inside, other=0).to(tl.float32)
    tl.store(y + (batch * outputs + output) * voxels + v, result, mask=valid)


@triton.jit
def _dz(
    near, x, kernel, rows, end, cols, inside, a, b, voxels, channels, batch, WIDTH: tl.constexpr,
):  # fmt: skip
    """The volume's tile, its normalised form, the gradient before SiLU, and the tile of ``near``."""
    rows = batch * voxels + rows.to(tl.int64)
    mask = (rows < batch * voxels + end)[:, None]
    value = tl.load(x + rows[:, None] * channels + cols[None, :], mask=mask & inside[None, :], other=0).to(tl.float32)
    z = value * a[None, :] + b[None, :]
    s = tl.sigmoid(z)
    js = tl.arange(0, WIDTH)
    d_out = tl.load(near + rows[:, None] * WIDTH + js[None, :], mask=mask, other=0)
    right = tl.load(kernel + js[:, None] * channels + cols[None, :], mask=inside[None, :], other=0)
    dn = tl.dot(d_out, right, input_precision="ieee")
    return value, (z * s).to(x.dtype.element_ty), dn * s * (1 + z * (1 - s)), d_out


@triton.jit
def head_backward_sums(
    near, x, scale, offset, kernel, sums, parts, voxels, channels, count,
    CHUNK: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    start = tl.program_id(0) * CHUNK
    end = tl.minimum(start + CHUNK, voxels)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = cols < channels
    a = tl.load(scale + batch * channels + cols, mask=inside, other=0)
    b = tl.load(offset + batch * channels + cols, mask=inside, other=0)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    product = tl.zeros([ROWS, COLUMNS], tl.float32)
    d_kernel = tl.zeros([WIDTH, COLUMNS], tl.float32)
    for i in range(0, CHUNK, ROWS):
        rows = start + i + tl.arange(0, ROWS)
        value, n, dz, d_out = _dz(near, x, kernel, rows, end, cols, inside, a, b, voxels, channels, batch, WIDTH)
        total += dz
        product += dz * value
        d_kernel = tl.dot(tl.trans(d_out), n, d_kernel, input_precision="ieee")
    at = ((batch * count + tl.program_id(0)) * 2) * channels + cols
    tl.store(sums + at, tl.sum(total, 0), mask=inside)
    tl.store(sums + at + channels, tl.sum(product, 0), mask=inside)
    row = (batch * count + tl.program_id(0)) * WIDTH + tl.arange(0, WIDTH)
    tl.store(parts + row[:, None] * channels + cols[None, :], d_kernel, mask=inside[None, :])


@triton.jit
def head_backward_apply(
    near, x, scale, offset, slope, level, kernel, dx, voxels, channels,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = cols < channels
    at = batch * channels + cols
    a = tl.load(scale + at, mask=inside, other=0)
    b = tl.load(offset + at, mask=inside, other=0)
    p = tl.load(slope + at, mask=inside, other=0)
    q = tl.load(level + at, mask=inside, other=0)
    value, _, dz, _ = _dz(near, x, kernel, rows, voxels, cols, inside, a, b, voxels, channels, batch, WIDTH)
    result = dz * a[None, :] + value * p[None, :] + q[None, :]
    to = (batch * voxels + rows.to(tl.int64))[:, None] * channels + cols[None, :]
    tl.store(dx + to, result.to(dx.dtype.element_ty), mask=(rows < voxels)[:, None] & inside[None, :])
