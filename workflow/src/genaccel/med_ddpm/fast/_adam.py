"""Triton kernel behind ``adam``."""

import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def adam_ema(
    weights, mean, square, average, half, gradient, step, n, rate, decay, start, interval,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr, LOG1: tl.constexpr, LOG2: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    number = tl.load(step)
    count = number.to(tl.float32)
    g = tl.load(gradient + i, mask=mask, other=0)
    m = tl.load(mean + i, mask=mask, other=0)
    v = tl.load(square + i, mask=mask, other=0)
    w = tl.load(weights + i, mask=mask, other=0)
    m = m + (g - m) * (1 - BETA1)
    v = v * BETA2 + g * g * (1 - BETA2)
    # beta^count: the count changes while a recorded graph does not, so it is read from memory.
    first = 1 - tl.exp2(count * LOG1)
    second = 1 - tl.exp2(count * LOG2)
    w = w - rate / first * m / (tl.sqrt(v / second) + EPS)
    tl.store(mean + i, m, mask=mask)
    tl.store(square + i, v, mask=mask)
    tl.store(weights + i, w, mask=mask)
    tl.store(half + i, w.to(half.dtype.element_ty), mask=mask)
    if number % interval == 0:
        old = tl.load(average + i, mask=mask, other=0)
        keep = tl.where(number < start, 0.0, decay)
        tl.store(average + i, old * keep + w * (1 - keep), mask=mask)
