"""All weights of a network in one flat array, so that optimizer, average and half-precision copy are one kernel."""

from __future__ import annotations

import torch
from torch import Tensor, nn

ALIGNMENT = 64
"""Elements: tensors start at multiples of 128 bytes in half precision, as the convolution libraries like them."""


class FlatWeights:
    """Where each parameter lies in a flat array; 3D kernels lie there channels-last.

    Args:
        model: its parameters, by name.
        together: names that must lie without a gap, in this order, so that they can be used as one matrix.
    """

    def __init__(self, model: nn.Module, together: list[list[str]]) -> None:
        self.shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
        gathered = {name for names in together for name in names}
        self.offsets: dict[str, int] = {}
        end = 0
        for names in [*together, *([name] for name in self.shapes if name not in gathered)]:
            end += -end % ALIGNMENT
            for name in names:
                self.offsets[name] = end
                end += self.shapes[name].numel()
        self.size = end

    def view(self, flat: Tensor, name: str) -> Tensor:
        """A parameter in a flat array, in its own shape; a 3D kernel is strided channels-last."""
        shape = self.shapes[name]
        part = flat[self.offsets[name] : self.offsets[name] + shape.numel()]
        if len(shape) == 5:
            return part.view(shape[0], *shape[2:], shape[1]).permute(0, 4, 1, 2, 3)
        return part.view(shape)

    def matrix(self, flat: Tensor, names: list[str]) -> Tensor:
        """Parameters that lie together, as one: (sum of first sides, rest)."""
        rows = sum(self.shapes[name][0] for name in names)
        rest = self.shapes[names[0]][1:]
        start = self.offsets[names[0]]
        return flat[start : start + rows * rest.numel()].view(rows, *rest)

    def gather(self, model: nn.Module) -> Tensor:
        """The model's parameters as a new flat FP32 array on their device."""
        parameters = dict(model.named_parameters())
        flat = torch.zeros(self.size, device=next(iter(parameters.values())).device)
        for name, parameter in parameters.items():
            self.view(flat, name).copy_(parameter.detach())
        return flat
