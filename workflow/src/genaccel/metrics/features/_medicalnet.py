"""MedicalNet's residual networks, from the files that their authors publish."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from genaccel.atomic import file_sha256
from genaccel.metrics.features._grid import SIDE, to_cube
from genaccel.spec import SpecError

SOURCE = "https://github.com/Tencent/MedicalNet"
DILATIONS = {"layer3": 2, "layer4": 4}
"""MedicalNet keeps an eighth of the grid in its last two stages and widens their kernels instead."""


class Layout(NamedTuple):
    """What tells the networks apart: kind of block, blocks a stage, and kind of shortcut."""

    block: str
    blocks: tuple[int, ...]
    shortcut: str


class MedicalNet:
    """Means over space of the last stage: 512 features, 2048 of bottlenecks.

    Args:
        name: as in the registry.
        layout: of the network.
        weights: ``resnet_<depth>_23dataset.pth``, a state dict or ``{"state_dict": ...}`` with names that may start
            with ``module.``. Nothing in it is executed.
        weights_sha256: of this file.
        device: where to compute.
        side: voxels a side of what the network sees.

    Raises:
        SpecError: the file is not named, missing, another one than ``weights_sha256`` says, or of another network.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        weights: str | None,
        weights_sha256: str | None,
        device: torch.device,
        side: int = SIDE,
    ) -> None:
        self.name, self.side = name, side
        path, self.sha256 = _checked(name, weights, weights_sha256)
        self._network = build(layout)
        _load(self._network, _read(path), path, name)
        self._network.to(device).eval()
        self.dimension = self._network.in_planes

    @torch.no_grad()
    def __call__(self, volumes: Tensor) -> Tensor:
        """(B, 1, D, H, W) in [-1, 1], RAS, to (B, d); every volume by itself."""
        return self._network(prepare(volumes, self.side))


def build(layout: Layout) -> Any:
    """The network as published, whose output is (B, d); randomly initialised."""
    # Here rather than on top: MONAI imports whatever is installed, which takes several seconds.
    from monai.networks.nets.resnet import ResNet, get_inplanes

    network = ResNet(
        layout.block,
        list(layout.blocks),
        get_inplanes(),
        spatial_dims=3,
        n_input_channels=1,
        conv1_t_stride=2,
        shortcut_type=layout.shortcut,
        feed_forward=False,
        bias_downsample=False,
    )
    # MONAI's stages halve the grid; the published weights were trained with dilated kernels instead.
    for stage, dilation in DILATIONS.items():
        for module in getattr(network, stage).modules():
            if isinstance(module, nn.Conv3d):
                module.stride = (1, 1, 1)
                if module.kernel_size == (3, 3, 3):
                    module.dilation = module.padding = (dilation,) * 3
            if isinstance(shortcut := getattr(module, "downsample", None), partial):
                module.downsample = partial(shortcut.func, **shortcut.keywords | {"stride": 1})
    return network


def prepare(volumes: Tensor, side: int) -> Tensor:
    """z-scored cubes, (B, 1, D, H, W) -> (B, 1, side, side, side); a constant volume becomes zero.

    Over all voxels, as MONAI's perceptual loss does for these networks: a synthetic background is never exactly
    air, so that scaling by the non-zero voxels, as in training, would depend on its noise.
    """
    x = to_cube(volumes, side)
    mean, std = x.mean(dim=(1, 2, 3, 4), keepdim=True), x.std(dim=(1, 2, 3, 4), keepdim=True)
    return (x - mean) / std.clamp_min(1e-4)


def _checked(name: str, weights: str | None, weights_sha256: str | None) -> tuple[Path, str]:
    depth = name.rsplit("_", 1)[-1]
    obtain = f"resnet_{depth}_23dataset.pth is in the archive of pretrained models that {SOURCE} links to"
    if weights is None:
        raise SpecError(f"{name} needs its file: set metrics.features.weights to it; {obtain}")
    path = Path(weights)
    if not path.is_file():
        raise SpecError(f"there is no {path}, the weights of {name}; correct metrics.features.weights; {obtain}")
    found = file_sha256(path)
    if weights_sha256 is None:
        raise SpecError(
            f"metrics.features.weights_sha256 is not set; {path} has {found}: where you trust this file, set it to "
            "that, so that all see volumes through one network"
        )
    if found != weights_sha256:
        raise SpecError(
            f"{path} has SHA-256 {found}, but metrics.features.weights_sha256 says {weights_sha256}; correct "
            f"metrics.features.weights or the hash, or fetch the file again: {obtain}"
        )
    return path, found


def _read(path: Path) -> Mapping[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    # Damaged pickles raise nearly any exception.
    except Exception as error:
        kind = type(error).__name__
        raise SpecError(
            f"{path} (metrics.features.weights) is no PyTorch file of tensors alone ({kind}); fetch it again "
            f"from {SOURCE}"
        ) from None
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in content.items()
    ):
        raise SpecError(
            f"{path} (metrics.features.weights) holds no state dict of tensors, bare or under `state_dict`; fetch "
            f"MedicalNet's file from {SOURCE}"
        )
    return content


def _load(network: nn.Module, tensors: Mapping[str, Tensor], path: Path, name: str) -> None:
    state = {key.removeprefix("module."): tensor for key, tensor in tensors.items()}
    # The head of the task that it was trained on, and a counter that only training needs.
    given = {k: t.float() for k, t in state.items() if not k.startswith("conv_seg.") and "num_batches" not in k}
    own = {k: t for k, t in network.state_dict().items() if "num_batches" not in k}
    faults = {
        "lacks": [k for k in own if k not in given],
        "has besides": [k for k in given if k not in own],
        "has in another shape": [k for k in own if k in given and own[k].shape != given[k].shape],
    }
    for fault, keys in faults.items():
        if keys:
            raise SpecError(
                f"{path} does not fit {name}: it {fault} {len(keys)} of {len(own)} tensors, such as {keys[0]}; set "
                f"metrics.features.network to the network of this file, or metrics.features.weights to that of {name}"
            )
    if not all(bool(tensor.isfinite().all()) for tensor in given.values()):
        raise SpecError(
            f"{path} (metrics.features.weights) holds values that are not finite; fetch it again from {SOURCE}"
        )
    network.load_state_dict(given, strict=False)
