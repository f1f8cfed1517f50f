"""Counts what one call of a network computes, from sizes alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry


class Counter(TorchDispatchMode):
    """Counts by PyTorch's own formulas, without the bookkeeping by module that makes its counter slow.

    Attributes:
        flops: of convolutions and matrix products, a multiply-add being two.
        operations: calls of operators that compute, views left out.
        elements: of the tensors that the convolutions and matrix products take and give, each once a product.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = self.operations = self.elements = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations += not func.is_view
        if formula := flop_registry.get(func.overloadpacket):
            self.flops += formula(*args, **(kwargs or {}), out_val=result)
            moved = (x for x in tree_leaves((args, kwargs, result)) if isinstance(x, Tensor))
            self.elements += sum(tensor.numel() for tensor in moved)
        return result
