"""A network's parameters as the fused blocks ask for them: FP32, in the volumes' dtype, and their gradients."""

from __future__ import annotations

from torch import Tensor

from genaccel.med_ddpm.fast.flat import FlatWeights


class Parameters:
    """Views of flat arrays, by the published names.

    Args:
        layout: where each parameter lies.
        weights: flat, FP32.
        half: flat, in the dtype of the volumes.
        gradient: flat, FP32; None where only sampling is asked for.

    Attributes:
        adds: whether ``put`` adds to the gradient instead of replacing it.
    """

    adds = False

    def __init__(self, layout: FlatWeights, weights: Tensor, half: Tensor, gradient: Tensor | None = None) -> None:
        self.layout, self.weights, self.gradient = layout, weights, gradient
        self._full = {name: layout.view(weights, name) for name in layout.shapes}
        self._half = {name: layout.view(half, name) for name in layout.shapes}
        self._gradient = {} if gradient is None else {name: layout.view(gradient, name) for name in layout.shapes}

    def has(self, name: str) -> bool:
        return name in self._full

    def full(self, name: str) -> Tensor:
        return self._full[name]

    def half(self, name: str) -> Tensor:
        return self._half[name]

    def kernel_rows(self, name: str) -> Tensor:
        """A 3D kernel, (C, K, 3, 3, 3), as it lies in memory: (C, 27 K), neighbours first and channels last."""
        return self._half[name].permute(0, 2, 3, 4, 1).flatten(1)

    def put(self, name: str, gradient: Tensor) -> None:
        """Writes a parameter's gradient, or adds to it where a batch comes in parts."""
        _put(self._gradient[name], gradient, self.adds)

    def put_over_batch(self, name: str, gradient: Tensor) -> None:
        """The same with a gradient for each volume, (B, ...)."""
        self.put(name, over_batch(gradient))

    def put_matrix(self, names: list[str], gradient: Tensor) -> None:
        """The same for parameters that lie together."""
        _put(self.layout.matrix(self.gradient, names), gradient, self.adds)

    def matrix(self, names: list[str]) -> Tensor:
        """Parameters that lie together as one, FP32."""
        return self.layout.matrix(self.weights, names)


def over_batch(values: Tensor) -> Tensor:
    """The sum over volumes, (B, ...) -> (...); no kernel where there is one."""
    return values[0] if len(values) == 1 else values.sum(0)


def _put(place: Tensor, gradient: Tensor, adds: bool) -> None:
    if adds:
        place += gradient
    else:
        place.copy_(gradient)
