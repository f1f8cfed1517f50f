"""A step recorded as a CUDA graph: replayed, hundreds of kernels cost the host one launch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WARMUP = 3
"""Calls before recording: libraries choose kernels and take their workspaces in the first ones."""


class Graphed:
    """A step that is recorded at its first call with inputs of a shape, and replayed from then on.

    Args:
        step: of tensors, to a tensor; what else it reads and writes must stay where it is.
        kept: what the step changes beside its output, and the calls before recording must leave as it was.

    The output lies in the same place after every replay of a shape: copy what must outlive the next one.
    """

    def __init__(self, step: Callable[..., Tensor], kept: tuple[Tensor, ...] = ()) -> None:
        self._step, self._kept = step, kept
        self._recordings: dict[tuple[torch.Size, ...], _Recording] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        shapes = tuple(value.shape for value in inputs)
        if shapes not in self._recordings:
            self._recordings[shapes] = _Recording(self._step, inputs, self._kept)
        return self._recordings[shapes](*inputs)


class _Recording:
    """One graph and the memory that it reads and writes."""

    def __init__(self, step: Callable[..., Tensor], inputs: tuple[Tensor, ...], kept: tuple[Tensor, ...]) -> None:
        self._inputs = [value.clone() for value in inputs]
        before = [value.clone() for value in kept]
        # PyTorch wants the calls before recording on a stream of their own.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUP):
                step(*self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        for value, old in zip(kept, before, strict=True):
            value.copy_(old)
        del before
        # What those calls left in the cache is of no use to the graph, which has memory of its own.
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._output = step(*self._inputs)

    def __call__(self, *inputs: Tensor) -> Tensor:
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given)
        self._graph.replay()
        return self._output
