"""The kernel that computes attention in this process: PyTorch's, unless the device has brought one of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values to what they attend to, each (B, heads, tokens, channels); scaled by channels^-1/2."""

_kernel: Attention = F.scaled_dot_product_attention


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(channels)) v, without mask or dropout."""
    return _kernel(q, k, v)


def use(kernel: Attention | None) -> None:
    """Sets the kernel, None for PyTorch's; ``Device.apply`` does, as with every other switch of a variant."""
    global _kernel
    _kernel = kernel or F.scaled_dot_product_attention
