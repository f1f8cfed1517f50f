"""Pooled encoder stages of deepbet's brain extractor (Fisch et al., deepbet, Comput. Biol. Med. 2024)."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.atomic import file_sha256
from genaccel.metrics.features._grid import SIDE, to_cube
from genaccel.spec import SpecError

FILE = "data/models/model.pt"


def deepbet(device: torch.device) -> Encoder:
    """The network of the installed package ``deepbet``.

    Raises:
        SpecError: the package, or the network's file within it, is missing.
    """
    try:
        files = metadata.files("deepbet") or []
    except metadata.PackageNotFoundError:
        raise SpecError(
            "FID-3D needs the package deepbet, which holds its network; pip install deepbet==1.0.2"
        ) from None
    paths = [Path(file.locate()) for file in files if file.as_posix().endswith(FILE)]
    if not paths or not paths[0].is_file():
        raise SpecError(
            f"the installed package deepbet lacks {FILE}, the network of FID-3D; install deepbet==1.0.2 again"
        )
    return Encoder(paths[0], device)


class Encoder:
    """Means over space of the four encoder stages, 16 + 32 + 64 + 128 = 240 features.

    Rebuilt from the weights, since the file is a traced graph in which the use of TF32 is fixed.

    Args:
        path: TorchScript file of the whole network.
        device: where to compute.
        side: voxels a side of what it sees.
    """

    name = "deepbet"
    dimension = 240

    def __init__(self, path: Path, device: torch.device, side: int = SIDE) -> None:
        self.side = side
        self.sha256 = file_sha256(path)
        self._weights = torch.jit.load(str(path), map_location=device).state_dict()

    @torch.no_grad()
    def __call__(self, volumes: Tensor) -> Tensor:
        """(B, 1, D, H, W) in [-1, 1], RAS, to (B, 240); every volume by itself."""
        return torch.cat([stage.mean(dim=(2, 3, 4)) for stage in self.stages(prepare(volumes, self.side))], dim=1)

    def stages(self, x: Tensor) -> list[Tensor]:
        """Output of every stage, (B, 16 * 2^i, side / 2^(i+2), ...), of a prepared (B, 1, side, side, side)."""
        x = F.max_pool3d(F.relu(self._conv(x, "init.0", stride=2)), kernel_size=3, stride=2, padding=1)
        outputs = []
        for stage in range(4):
            x = self._block(x, f"down{stage}.block1", stride=2 if stage else 1)
            x = self._block(x, f"down{stage}.block2", stride=1)
            outputs.append(x)
        return outputs

    def _block(self, x: Tensor, name: str, stride: int) -> Tensor:
        h = F.relu(self._conv(x, f"{name}.double_conv.0", stride))
        h = self._conv(h, f"{name}.double_conv.3")
        if f"{name}.downsample.0.weight" in self._weights:
            x = self._conv(x, f"{name}.downsample.0", stride)
        return F.relu(h + x)

    def _conv(self, x: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = self._weights[f"{name}.weight"]
        return F.instance_norm(F.conv3d(x, weight, stride=stride, padding=weight.shape[-1] // 2))


def prepare(volumes: Tensor, side: int) -> Tensor:
    """What the network was trained on: robustly scaled, z-scored cubes. (B, 1, D, H, W) -> (B, 1, side, side, side).

    A constant volume stays constant.
    """
    flat = volumes.flatten(1)
    low, high = (_percentile(flat, percent).view(-1, 1, 1, 1, 1) for percent in (0.5, 99.5))
    x = to_cube(volumes, side)
    x = ((x - low) / (high - low).clamp_min(1e-6)).clamp(0, 1)
    mean, std = x.mean(dim=(1, 2, 3, 4), keepdim=True), x.std(dim=(1, 2, 3, 4), keepdim=True)
    return (x - mean) / std.clamp_min(1e-6) * 0.226 + 0.449


def _percentile(flat: Tensor, percent: float) -> Tensor:
    # torch.quantile sorts, which is slow, and refuses more than 2^24 voxels.
    return flat.kthvalue(1 + round(percent / 100 * (flat.shape[1] - 1)), dim=1).values
