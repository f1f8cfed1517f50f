"""The UNet's blocks over channels-last volumes, forward and backward written out, so that each pass over memory counts.

Each forward leaves a record that its backward takes; normalised volumes are not kept but computed again in a
backward pass that reads their source anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.med_ddpm.fast.convolution import Sides, convolve, data_gradient, weight_gradient
from genaccel.med_ddpm.fast.group_norm import (
    Coefficients,
    backward_apply,
    backward_coefficients,
    backward_sums,
    coefficients,
    empty_sums,
    moments,
    normalise,
)
from genaccel.med_ddpm.fast.head import as_5d, head, head_backward_apply, head_backward_sums, near_gradient
from genaccel.med_ddpm.fast.parameters import Parameters
from genaccel.med_ddpm.fast.residual import residual_add, residual_project
from genaccel.med_ddpm.fast.upsample import upsample, upsample_backward
from genaccel.med_ddpm.spec import GROUPS


class Volume(NamedTuple):
    """A volume on its way through the network."""

    data: Tensor
    """(B, V, C)."""
    sides: Sides
    moments: Tensor
    """Of ``data``, as ``group_norm.moments`` leaves them."""


class Gradient(NamedTuple):
    """The gradient of a volume."""

    data: Tensor
    """(B, V, C)."""
    total: Tensor
    """Its sum over voxels, (B, C) FP32: known without reading it, from what made it."""


class Normalised(NamedTuple):
    """A GroupNorm over one or two volumes whose channels count as one's, and what its backward takes."""

    sources: tuple[Volume, ...]
    coefficients: Coefficients
    name: str
    silu: bool

    @classmethod
    def forward(
        cls, p: Parameters, name: str, sources: Sequence[Volume], shift: Tensor | None = None, silu: bool = True
    ) -> tuple[Tensor, Normalised]:
        """(B, V, all C) and the record."""
        voxels = sources[0].data.shape[1]
        c = coefficients(
            [s.moments for s in sources], voxels, p.full(f"{name}.weight"), p.full(f"{name}.bias"), GROUPS, shift
        )
        record = cls(tuple(sources), c, name, silu)
        out = record.empty()
        column = 0
        for source in sources:
            normalise(source.data, c, out, column, silu)
            column += source.data.shape[-1]
        return out, record

    def empty(self) -> Tensor:
        data = self.sources[0].data
        return data.new_empty(*data.shape[:2], sum(s.data.shape[-1] for s in self.sources))

    def backward(
        self,
        p: Parameters,
        dy: Tensor,
        kernel_gradient,
        extras: Sequence[Sequence[Gradient]],
        projected: tuple[Gradient, Tensor] | None = None,
    ) -> tuple[list[Gradient], Tensor]:
        """Gradients of the sources, and of the shift, (B, all C).

        Args:
            dy: gradient of the normalised volume.
            kernel_gradient: called with the normalised volume, computed again, for those that need it.
            extras: of each source, gradients that reach it by other ways.
            projected: gradient of a 1x1 convolution's output over the same sources, and its kernel.
        """
        normalised, sums = self.empty(), empty_sums(dy)
        column = 0
        for source in self.sources:
            backward_sums(dy, source.data, self.coefficients, column, sums, normalised, self.silu)
            column += source.data.shape[-1]
        kernel_gradient(normalised)
        del normalised
        voxels = dy.shape[1]
        all_moments = [s.moments for s in self.sources]
        weight = p.full(f"{self.name}.weight")
        g = backward_coefficients(sums, all_moments, voxels, self.coefficients, weight, GROUPS)
        p.put_over_batch(f"{self.name}.weight", g.weight)
        p.put_over_batch(f"{self.name}.bias", g.bias)
        gradients, column = [], 0
        for source, extra in zip(self.sources, extras, strict=True):
            here = slice(column, column + source.data.shape[-1])
            total = g.shift[:, here]
            for other in extra:
                total = total + other.total
            into = None
            if projected:
                into = (projected[0].data, projected[1])
                total = total + projected[0].total @ projected[1][:, here].float()
            data = backward_apply(
                dy, source.data, self.coefficients, g, column, [e.data for e in extra], into, self.silu
            )
            gradients.append(Gradient(data, total))
            column = here.stop
        return gradients, g.shift


class Residual:
    """Two norm-SiLU-convolutions; the step embedding and the first bias are a shift of the second norm."""

    def __init__(self, name: str, embedding: slice) -> None:
        self.name, self.embedding = name, embedding

    def forward(self, p: Parameters, sources: Sequence[Volume], shifts: Tensor):
        """(B, all widths) shifts -> the block's volume and its record."""
        name, sides = self.name, sources[0].sides
        n1, first = Normalised.forward(p, f"{name}.in_layers.0", sources)
        h = convolve(n1, sides, p.half(f"{name}.in_layers.2.weight"))
        del n1
        middle = Volume(h, sides, moments(h))
        n2, second = Normalised.forward(p, f"{name}.out_layers.0", [middle], shifts[:, self.embedding])
        o = convolve(n2, sides, p.half(f"{name}.out_layers.3.weight"))
        del n2
        bias = p.full(f"{name}.out_layers.3.bias")
        if self._projects(p):
            bias = bias + p.full(f"{name}.skip_connection.bias")
        if (kernel := self._kernel(p, sources)) is not None:
            o, m = residual_project(o, bias, [s.data for s in sources], kernel)
        else:
            o, m = residual_add(o, bias, sources[0].data)
        return Volume(o, sides, m), (first, second)

    def backward(self, p: Parameters, record, dy: Gradient, extras: Sequence[Sequence[Gradient]], shifts: Tensor):
        """Gradients of the sources; writes that of the shifts into its place."""
        first, second = record
        name, sides = self.name, first.sources[0].sides
        p.put_over_batch(f"{name}.out_layers.3.bias", dy.total)
        kernel2 = p.half(f"{name}.out_layers.3.weight")
        d_n2 = data_gradient(dy.data, sides, kernel2)
        (dh,), shift = second.backward(
            p,
            d_n2,
            lambda n: p.put(f"{name}.out_layers.3.weight", weight_gradient(n, dy.data, sides, kernel2)),
            [[]],
        )
        del d_n2
        shifts[:, self.embedding] = shift
        kernel1 = p.half(f"{name}.in_layers.2.weight")
        d_n1 = data_gradient(dh.data, sides, kernel1)

        def first_kernel(n: Tensor) -> None:
            p.put(f"{name}.in_layers.2.weight", weight_gradient(n, dh.data, sides, kernel1))

        if self._projects(p):
            p.put_over_batch(f"{name}.skip_connection.bias", dy.total)
            flat = dy.data.flatten(0, 1).t()
            d_kernel = torch.cat([flat @ s.data.flatten(0, 1) for s in first.sources], 1)
            p.put(f"{name}.skip_connection.weight", d_kernel[..., None, None, None])
        projected = None
        if (kernel := self._kernel(p, first.sources)) is not None:
            projected = dy, kernel
        else:
            extras = [[dy, *extras[0]]]
        return first.backward(p, d_n1, first_kernel, extras, projected)[0]

    def _projects(self, p: Parameters) -> bool:
        return p.has(f"{self.name}.skip_connection.weight")

    def _kernel(self, p: Parameters, sources: Sequence[Volume]) -> Tensor | None:
        """The skip connection as a matrix, (C, all K); None where it is the identity of one volume."""
        if self._projects(p):
            return p.half(f"{self.name}.skip_connection.weight").flatten(1)
        if len(sources) == 1:
            return None
        # Two volumes that already have the block's width together: as rare as a level narrower than the next.
        data = sources[0].data
        return torch.eye(sum(s.data.shape[-1] for s in sources), dtype=data.dtype, device=data.device)


class Attention:
    """Self-attention over all voxels, one head."""

    def __init__(self, name: str) -> None:
        self.name = name

    def forward(self, p: Parameters, x: Volume):
        n, record = Normalised.forward(p, f"{self.name}.norm", [x], silu=False)
        qkv = F.linear(n, *self._linear(p, "qkv"))
        o = _attend(*self._heads(qkv)).squeeze(1)
        h = F.linear(o, self._linear(p, "proj_out")[0])
        h, m = residual_add(h, p.full(f"{self.name}.proj_out.bias"), x.data)
        return Volume(h, x.sides, m), (record, qkv, o)

    def backward(self, p: Parameters, record, dy: Gradient) -> Gradient:
        normed, qkv, o = record
        flat = dy.data.flatten(0, 1)
        p.put_over_batch(f"{self.name}.proj_out.bias", dy.total)
        p.put(f"{self.name}.proj_out.weight", (flat.t() @ o.flatten(0, 1))[..., None])
        d_o = dy.data @ self._linear(p, "proj_out")[0]
        with torch.enable_grad():
            heads = [h.detach().contiguous().requires_grad_() for h in self._heads(qkv)]
            d_heads = torch.autograd.grad(_attend(*heads), heads, d_o.unsqueeze(1))
        d_qkv = torch.cat(d_heads, -1).squeeze(1)
        p.put(f"{self.name}.qkv.bias", d_qkv.float().sum((0, 1)))
        rows = d_qkv.flatten(0, 1)

        def kernel(n: Tensor) -> None:
            p.put(f"{self.name}.qkv.weight", (rows.t() @ n.flatten(0, 1))[..., None])

        d_n = d_qkv @ self._linear(p, "qkv")[0]
        return normed.backward(p, d_n, kernel, [[dy]])[0][0]

    def _linear(self, p: Parameters, name: str) -> tuple[Tensor, Tensor]:
        return p.half(f"{self.name}.{name}.weight").squeeze(-1), p.half(f"{self.name}.{name}.bias")

    @staticmethod
    def _heads(qkv: Tensor) -> tuple[Tensor, ...]:
        return qkv.unsqueeze(1).chunk(3, dim=-1)


class Head:
    """The last norm, SiLU and convolution."""

    @staticmethod
    def forward(p: Parameters, x: Volume):
        """(B, out_channels, D, H, W) FP32 and the record."""
        c = coefficients([x.moments], x.data.shape[1], p.full("out.0.weight"), p.full("out.0.bias"), GROUPS)
        return head(x.data, x.sides, c, _head_kernel(p), p.full("out.2.bias")), (x, c)

    @staticmethod
    def backward(p: Parameters, record, dy: Tensor) -> Gradient:
        x, c = record
        kernel, weight = _head_kernel(p), p.full("out.0.weight")
        near = near_gradient(dy, x.data.dtype)
        sums, d_kernel = head_backward_sums(near, x.data, c, kernel)
        g = backward_coefficients(sums, [x.moments], x.data.shape[1], c, weight, GROUPS)
        p.put_over_batch("out.0.weight", g.weight)
        p.put_over_batch("out.0.bias", g.bias)
        p.put("out.2.weight", as_5d(d_kernel))
        p.put("out.2.bias", dy.sum((0, 2, 3, 4)))
        return Gradient(head_backward_apply(near, x.data, c, g, kernel), g.shift)


def _head_kernel(p: Parameters) -> Tensor:
    """(27, K, C)."""
    return p.kernel_rows("out.2.weight").unflatten(1, (27, -1)).transpose(0, 1).contiguous()


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


class Downsample:
    """Strided convolution."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}.op"

    def forward(self, p: Parameters, x: Volume):
        h = convolve(x.data, x.sides, p.half(f"{self.name}.weight"), stride=2)
        m = moments(h, p.full(f"{self.name}.bias"))
        return Volume(h, tuple(side // 2 for side in x.sides), m), x

    def backward(self, p: Parameters, x: Volume, dy: Gradient, extra: Sequence[Gradient]) -> Gradient:
        kernel = p.half(f"{self.name}.weight")
        p.put_over_batch(f"{self.name}.bias", dy.total)
        p.put(f"{self.name}.weight", weight_gradient(x.data, dy.data, x.sides, kernel, stride=2))
        dx = data_gradient(dy.data, x.sides, kernel, stride=2)
        for other in extra:
            dx += other.data
        return Gradient(dx, dx.sum(1, dtype=torch.float32))


class Upsample:
    """Trilinear, then a convolution."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}.conv"

    def forward(self, p: Parameters, x: Volume):
        sides = tuple(2 * side for side in x.sides)
        h = convolve(upsample(x.data, x.sides), sides, p.half(f"{self.name}.weight"))
        return Volume(h, sides, moments(h, p.full(f"{self.name}.bias"))), x

    def backward(self, p: Parameters, x: Volume, dy: Gradient) -> Gradient:
        kernel = p.half(f"{self.name}.weight")
        sides = tuple(2 * side for side in x.sides)
        p.put_over_batch(f"{self.name}.bias", dy.total)
        p.put(f"{self.name}.weight", weight_gradient(upsample(x.data, x.sides), dy.data, sides, kernel))
        dx = upsample_backward(data_gradient(dy.data, sides, kernel), x.sides)
        return Gradient(dx, dx.sum(1, dtype=torch.float32))
