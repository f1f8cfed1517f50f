"""Med-DDPM's UNet on fused kernels: parameters and function of ``unet.UNet``, with fewer passes over memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genaccel.med_ddpm import blocks as stock
from genaccel.med_ddpm.fast.blocks import Attention, Downsample, Gradient, Head, Residual, Upsample, Volume
from genaccel.med_ddpm.fast.flat import FlatWeights
from genaccel.med_ddpm.fast.parameters import Parameters, over_batch
from genaccel.med_ddpm.fast.stem import stem, stem_backward
from genaccel.med_ddpm.unet import UNet


class FusedUNet:
    """Forward and backward of a UNet.

    Args:
        model: gives structure and parameters; it is read once and not changed.
        dtype: of the volumes: BF16, or FP32 to test the arithmetic.

    Attributes:
        layout: where each parameter lies in a flat array.
        weights: all parameters, flat, FP32.
        half: the same in ``dtype``.
    """

    def __init__(self, model: UNet, dtype: torch.dtype = torch.bfloat16) -> None:
        self.dtype, self.base_channels = dtype, model.base_channels
        self.in_channels, self.out_channels = model.in_channels, model.out_channels
        residuals = [name for name, module in model.named_modules() if isinstance(module, stock.ResidualBlock)]
        # The blocks' embedding layers are one matrix product, and what it gives needs the first biases added.
        self._embedding_weights = [f"{name}.emb_layers.1.weight" for name in residuals]
        self._embedding_biases = [f"{name}.emb_layers.1.bias" for name in residuals]
        self._first_biases = [f"{name}.in_layers.2.bias" for name in residuals]
        self.layout = FlatWeights(model, [self._embedding_weights, self._embedding_biases, self._first_biases])
        self.weights = self.layout.gather(model)
        self.half = self.weights.to(dtype)
        self._slices, self.shifts = {}, 0
        for name, bias in zip(residuals, self._first_biases, strict=True):
            width = self.layout.shapes[bias][0]
            self._slices[name] = slice(self.shifts, self.shifts + width)
            self.shifts += width
        self._inputs = [self._layers(f"input_blocks.{i}", layers) for i, layers in enumerate(model.input_blocks)][1:]
        self._middle = self._layers("middle_block", model.middle_block)
        self._outputs = [self._layers(f"output_blocks.{i}", layers) for i, layers in enumerate(model.output_blocks)]

    def _layers(self, name: str, layers: nn.ModuleList) -> list:
        made = {
            stock.ResidualBlock: lambda n: Residual(n, self._slices[n]),
            stock.Attention: Attention,
            stock.Downsample: Downsample,
            stock.Upsample: Upsample,
        }
        return [made[type(layer)](f"{name}.{i}") for i, layer in enumerate(layers) if type(layer) in made]

    def parameters(self, gradient: Tensor | None = None) -> Parameters:
        """Views for ``forward``; with a flat ``gradient`` also for ``backward``."""
        return Parameters(self.layout, self.weights, self.half, gradient)

    def forward(self, p: Parameters, x: Tensor, t: Tensor, keep: bool = False) -> tuple[Tensor, list | None]:
        """Noise in ``x``, as ``UNet.forward``.

        Args:
            x: (B, in_channels, D, H, W).
            t: (B,).
            keep: whether ``backward`` follows.

        Returns:
            (B, out_channels, D, H, W) FP32, and the record for ``backward``.
        """
        tape: list | None = [] if keep else None
        shifts, embedding = self._embed(p, t)
        data, m = stem(x, p.kernel_rows("input_blocks.0.0.weight"), p.half("input_blocks.0.0.bias"))
        h = Volume(data, tuple(x.shape[2:]), m)
        skips = [h]
        for layers in self._inputs:
            for layer in layers:
                h = self._run(p, layer, [h], shifts, tape)
            skips.append(h)
        for layer in self._middle:
            h = self._run(p, layer, [h], shifts, tape)
        for layers in self._outputs:
            sources = [h, skips.pop()]
            for layer in layers:
                h = self._run(p, layer, sources, shifts, tape)
                sources = [h]
        out, head = Head.forward(p, h)
        return out, None if tape is None else [x, embedding, tape, head]

    def _run(self, p: Parameters, layer, sources: list[Volume], shifts: Tensor, tape: list | None) -> Volume:
        if isinstance(layer, Residual):
            h, record = layer.forward(p, sources, shifts)
        else:
            h, record = layer.forward(p, sources[0])
        if tape is not None:
            tape.append((layer, record))
        return h

    def backward(self, p: Parameters, record: list, d_out: Tensor) -> None:
        """Writes the gradients of all parameters, or adds to them, as ``p.adds`` says.

        Args:
            record: from ``forward``.
            d_out: gradient of its result, (B, out_channels, D, H, W) FP32.
        """
        x, embedding, tape, head = record
        dh = Head.backward(p, head, d_out)
        shifts = torch.zeros(len(d_out), self.shifts, device=d_out.device)
        d_skips: list[Gradient] = []
        tape = list(tape)
        for layers in reversed(self._outputs):
            for layer in reversed(layers):
                if isinstance(layer, Residual):
                    dh, d_skip = layer.backward(p, tape.pop()[1], dh, [[], []], shifts)
                    d_skips.append(d_skip)
                else:
                    dh = layer.backward(p, tape.pop()[1], dh)
        for layer in reversed(self._middle):
            dh = self._back(p, layer, tape.pop()[1], dh, [], shifts)
        # The last skip reaches the last input block's output; each earlier one the input of a later block.
        dh = _sum(dh, d_skips.pop())
        for layers in reversed(self._inputs):
            for i, layer in reversed(list(enumerate(layers))):
                extra = [d_skips.pop()] if i == 0 else []
                dh = self._back(p, layer, tape.pop()[1], dh, extra, shifts)
        p.put_over_batch("input_blocks.0.0.bias", dh.total)
        d_kernel = stem_backward(x, dh.data)
        p.put("input_blocks.0.0.weight", d_kernel.unflatten(1, (3, 3, 3, -1)).permute(0, 4, 1, 2, 3))
        self._embed_backward(p, embedding, shifts)

    def _back(self, p: Parameters, layer, record, dy: Gradient, extra: list[Gradient], shifts: Tensor) -> Gradient:
        if isinstance(layer, Residual):
            return layer.backward(p, record, dy, [extra], shifts)[0]
        if isinstance(layer, Downsample):
            return layer.backward(p, record, dy, extra)
        return layer.backward(p, record, dy)

    def _embed(self, p: Parameters, t: Tensor):
        """Shifts of all residual blocks' second norms, (B, shifts), and what the backward takes."""
        e0 = stock.step_embedding(t, self.base_channels)
        z1 = F.linear(e0, p.full("time_embed.0.weight"), p.full("time_embed.0.bias"))
        e1 = F.silu(z1)
        z2 = F.linear(e1, p.full("time_embed.2.weight"), p.full("time_embed.2.bias"))
        e2 = F.silu(z2)
        bias = p.matrix(self._embedding_biases) + p.matrix(self._first_biases)
        return F.linear(e2, p.matrix(self._embedding_weights), bias), (e0, z1, e1, z2, e2)

    def _embed_backward(self, p: Parameters, record, shifts: Tensor) -> None:
        e0, z1, e1, z2, e2 = record
        total = over_batch(shifts)
        p.put_matrix(self._embedding_biases, total)
        p.put_matrix(self._first_biases, total)
        p.put_matrix(self._embedding_weights, shifts.t() @ e2)
        d2 = _silu_backward(shifts @ p.matrix(self._embedding_weights), z2)
        p.put("time_embed.2.weight", d2.t() @ e1)
        p.put_over_batch("time_embed.2.bias", d2)
        d1 = _silu_backward(d2 @ p.full("time_embed.2.weight"), z1)
        p.put("time_embed.0.weight", d1.t() @ e0)
        p.put_over_batch("time_embed.0.bias", d1)


def _sum(one: Gradient, other: Gradient) -> Gradient:
    return Gradient(one.data + other.data, one.total + other.total)


def _silu_backward(dy: Tensor, z: Tensor) -> Tensor:
    return torch.ops.aten.silu_backward(dy, z)
