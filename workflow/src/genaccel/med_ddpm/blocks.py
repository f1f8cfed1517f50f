"""Blocks of Med-DDPM's UNet, each a module that a faster kernel can replace without touching the network.

The attribute names are those of the published checkpoints, so that their state dicts load as they are.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genaccel.attention import attend
from genaccel.med_ddpm.spec import GROUPS

MAX_PERIOD = 1000
"""Longest period of the step embedding, in steps over 2 pi; published."""


class GroupNorm(nn.GroupNorm):
    """GroupNorm of 32 groups, eps 1e-5, computed in FP32 at least, whatever autocast says; (B, C, ...) -> same dtype.

    Half precision's mean over a group's millions of voxels would lose the signal.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(GROUPS, channels, eps=1e-5)

    def forward(self, x: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        y = F.group_norm(x.to(wide), self.num_groups, self.weight.to(wide), self.bias.to(wide), self.eps)
        return y.to(x.dtype)


class GroupNormSiLU(GroupNorm):
    """GroupNorm, then SiLU in the input's dtype: one module, since the pair is bound by memory traffic."""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(super().forward(x))


class Upsample(nn.Module):
    """Trilinear x2 (``align_corners`` off), then a convolution; (B, C, D, H, W) -> (B, C, 2D, 2H, 2W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2, mode="trilinear", align_corners=False))


class Downsample(nn.Module):
    """Strided convolution; (B, C, D, H, W) -> (B, C, D/2, H/2, W/2)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.op = nn.Conv3d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.op(x)


class ResidualBlock(nn.Module):
    """Two norm-SiLU-convolutions with the step embedding added between; starts as its skip connection.

    Args:
        channels: of the input.
        embedding_channels: of the step embedding.
        out_channels: of the output.
        dropout: before the last convolution.
    """

    def __init__(self, channels: int, embedding_channels: int, out_channels: int, dropout: float) -> None:
        super().__init__()
        # `Identity` stands where the published lists hold SiLU, which keeps the positions of the keys.
        self.in_layers = nn.Sequential(
            GroupNormSiLU(channels), nn.Identity(), nn.Conv3d(channels, out_channels, 3, padding=1)
        )
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(embedding_channels, out_channels))
        self.out_layers = nn.Sequential(
            GroupNormSiLU(out_channels),
            nn.Identity(),
            nn.Dropout(dropout),
            zeroed(nn.Conv3d(out_channels, out_channels, 3, padding=1)),
        )
        self.skip_connection = nn.Identity() if channels == out_channels else nn.Conv3d(channels, out_channels, 1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        """(B, C, D, H, W), (B, E) -> (B, C_out, D, H, W)."""
        h = self.in_layers(x)
        h = h + self.emb_layers(embedding).to(h.dtype)[:, :, None, None, None]
        return self.skip_connection(x) + self.out_layers(h)


class Attention(nn.Module):
    """Self-attention over all voxels, one head; starts as the identity; (B, C, D, H, W) -> (B, C, D, H, W)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = GroupNorm(channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj_out = zeroed(nn.Conv1d(channels, channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(2)
        # Contiguous along the channels, or the fused kernels refuse and the matrix of all pairs is stored.
        q, k, v = self.qkv(self.norm(tokens)).transpose(1, 2).contiguous().unsqueeze(1).chunk(3, dim=-1)
        # The default scale d^-1/2 on q @ k equals the published d^-1/4 on each of them.
        h = attend(q, k, v)
        return (tokens + self.proj_out(h.squeeze(1).transpose(1, 2))).view_as(x)


def step_embedding(t: Tensor, channels: int) -> Tensor:
    """Sinusoids of the raw integer step, cosines first; (B,) -> (B, channels), FP32.

    Frequencies are exp(-ln(1000) i / half) for i below half = channels // 2.
    """
    half = channels // 2
    frequencies = torch.exp(-math.log(MAX_PERIOD) * torch.arange(half, dtype=torch.float32, device=t.device) / half)
    angles = t.float()[:, None] * frequencies
    return F.pad(torch.cat([angles.cos(), angles.sin()], dim=1), (0, channels % 2))


def zeroed(module: nn.Module) -> nn.Module:
    """The module with all its parameters zero, so that the branch it ends adds nothing at first."""
    for parameter in module.parameters():
        nn.init.zeros_(parameter)
    return module
