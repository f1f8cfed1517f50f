"""Med-DDPM's noise predictor: a 3D UNet that is told the step, and the masks as extra input channels."""

from __future__ import annotations

from torch import Tensor, cat, is_grad_enabled, nn
from torch.utils.checkpoint import checkpoint

from genaccel.med_ddpm.blocks import (
    Attention,
    Downsample,
    GroupNormSiLU,
    ResidualBlock,
    Upsample,
    step_embedding,
    zeroed,
)
from genaccel.med_ddpm.spec import MedDDPMSpec


class UNet(nn.Module):
    """Predicts the noise in the image channels; its state dict's names and shapes are the published ones.

    Args:
        spec: channels, levels and attention; ``spec.shape`` alone does not bind the network, which takes
            any sides that its levels can halve.
        gradient_checkpointing: keep only the input of each residual and attention block and compute the
            rest again in the backward pass; may be switched at any time through the attribute.

    Source: Dorjsembe et al., Conditional Diffusion Models for Semantic 3D Brain MRI Synthesis, IEEE JBHI 2024;
    the blocks are those of Nichol and Dhariwal, Improved Denoising Diffusion Probabilistic Models, ICML 2021.
    """

    def __init__(self, spec: MedDDPMSpec, gradient_checkpointing: bool = False) -> None:
        super().__init__()
        self.in_channels, self.out_channels = spec.in_channels, spec.out_channels
        self.base_channels = spec.base_channels
        self.gradient_checkpointing = gradient_checkpointing
        self.halvings = len(spec.channel_multipliers) - 1
        widths = [spec.base_channels * multiplier for multiplier in spec.channel_multipliers]
        embedding = 4 * spec.base_channels

        def residual(channels: int, out_channels: int) -> ResidualBlock:
            return ResidualBlock(channels, embedding, out_channels, spec.dropout)

        def attention(level: int) -> list[nn.Module]:
            return [Attention(widths[level])] if 2**level == spec.attention_level else []

        self.time_embed = nn.Sequential(
            nn.Linear(spec.base_channels, embedding), nn.SiLU(), nn.Linear(embedding, embedding)
        )

        channels = widths[0]
        skips = [channels]
        self.input_blocks = nn.ModuleList([nn.ModuleList([nn.Conv3d(spec.in_channels, channels, 3, padding=1)])])
        for level, width in enumerate(widths):
            for _ in range(spec.num_res_blocks):
                self.input_blocks.append(nn.ModuleList([residual(channels, width), *attention(level)]))
                channels = width
                skips.append(channels)
            if level < self.halvings:
                self.input_blocks.append(nn.ModuleList([Downsample(channels)]))
                skips.append(channels)

        self.middle_block = nn.ModuleList(
            [residual(channels, channels), Attention(channels), residual(channels, channels)]
        )

        self.output_blocks = nn.ModuleList()
        for level, width in reversed(list(enumerate(widths))):
            for block in range(spec.num_res_blocks + 1):
                layers = [residual(channels + skips.pop(), width), *attention(level)]
                channels = width
                if level and block == spec.num_res_blocks:
                    layers.append(Upsample(channels))
                self.output_blocks.append(nn.ModuleList(layers))

        self.out = nn.Sequential(
            GroupNormSiLU(channels), nn.Identity(), zeroed(nn.Conv3d(channels, spec.out_channels, 3, padding=1))
        )

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        """Noise in ``x`` at step ``t``.

        Args:
            x: image channels at step ``t``, then the condition's channels (-1 or +1); (B, in_channels, D, H, W).
            t: integer steps from 0; (B,).

        Returns:
            (B, out_channels, D, H, W).

        Raises:
            ValueError: where the channels are not the network's or a side cannot be halved at every level.
        """
        self.check_input(x)
        embedding = self.time_embed(step_embedding(t, self.base_channels).to(self.time_embed[0].weight.dtype))
        h, skips = x, []
        for layers in self.input_blocks:
            h = self._run(layers, h, embedding)
            skips.append(h)
        h = self._run(self.middle_block, h, embedding)
        for layers in self.output_blocks:
            h = self._run(layers, cat([h, skips.pop()], dim=1), embedding)
        return self.out(h)

    def _run(self, layers: nn.ModuleList, h: Tensor, embedding: Tensor) -> Tensor:
        for layer in layers:
            inputs = (h, embedding) if isinstance(layer, ResidualBlock) else (h,)
            if self.gradient_checkpointing and is_grad_enabled() and isinstance(layer, (ResidualBlock, Attention)):
                h = checkpoint(layer, *inputs, use_reentrant=False)
            else:
                h = layer(*inputs)
        return h

    def check_input(self, x: Tensor) -> None:
        """Raises ValueError where the channels are not the network's or a side cannot be halved at every level."""
        if x.ndim != 5 or x.shape[1] != self.in_channels:
            raise ValueError(
                f"UNet: the input has shape {tuple(x.shape)}; it must be (B, {self.in_channels}, D, H, W): "
                f"{self.out_channels} image and {self.in_channels - self.out_channels} condition channels"
            )
        for axis, side in zip("DHW", x.shape[2:], strict=True):
            if side % 2**self.halvings or not side:
                raise ValueError(
                    f"UNet: the input's side {axis} = {side} voxels cannot be halved {self.halvings} times, as "
                    f"{self.halvings + 1} levels need; pad or resample it to a multiple of {2**self.halvings}"
                )
