"""The segmenter's network and its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from genaccel.atomic import atomic_file
from genaccel.spec import SpecError

METADATA = "segmenter"
SHALLOWEST, DEEPEST = 2, 4
AIR = -1.0


def halvings(shape: Sequence[int]) -> int:
    """How often the network halves a grid: while 4 voxels are left on its shortest side, from two to four times."""
    side, count = min(shape), 0
    while side // 2 >= 4:
        side, count = side // 2, count + 1
    return min(max(count, SHALLOWEST), DEEPEST)


class SegmenterNetwork(nn.Module):
    """A residual U-Net from modalities to one logit a mask channel; channels may overlap.

    Args:
        modalities: channels M of the image.
        channels: channels C of the mask.
        width: channels of the first level; every level below has twice as many.
        depth: halvings of the grid, as ``halvings`` says.

    Source: Isensee et al., nnU-Net, Nature Methods 18, 2021; here MONAI's DynUNet.
    """

    def __init__(self, modalities: int, channels: int, width: int, depth: int) -> None:
        super().__init__()
        # Here rather than on top: MONAI imports whatever is installed, which takes several seconds.
        from monai.networks.nets.dynunet import DynUNet

        self.multiple = 2**depth
        self.unet = DynUNet(
            spatial_dims=3,
            in_channels=modalities,
            out_channels=channels,
            kernel_size=[3] * (depth + 1),
            strides=[1] + [2] * depth,
            upsample_kernel_size=[2] * depth,
            filters=[width * 2**level for level in range(depth + 1)],
            # Not instance norm, which takes away how bright a patch is on the scale that all volumes share, and
            # which would see other statistics in the patches of training than in whole volumes.
            norm_name="BATCH",
            res_block=True,
        )

    def forward(self, image: Tensor) -> Tensor:
        """(B, M, R, A, S) in [-1, 1] to logits, (B, C, R, A, S); any grid, by padding with air."""
        padding = []
        for side in reversed(image.shape[2:]):
            missing = -side % self.multiple
            padding += [missing // 2, missing - missing // 2]
        logits = self.unet(F.pad(image, padding, value=AIR))
        before = padding[-2::-2]
        return logits[(..., *(slice(b, b + side) for b, side in zip(before, image.shape[2:], strict=True)))]


class Segmenter:
    """A trained network: an image, (M, R, A, S) in [-1, 1], to the mask channels in it, (C, R, A, S) bool.

    The image and its left-right mirror image are read together and averaged, so that a mirrored head gets the
    mirrored mask.

    Attributes:
        modalities, channels: what M and C are, in order.
        train_dice: mean Dice of every channel over the training split; None where the channel is empty in all of it.
    """

    def __init__(self, network: SegmenterNetwork, metadata: Mapping[str, Any], device: torch.device) -> None:
        self._network = network.to(device).eval()
        self._device = device
        self.modalities = tuple(metadata["modalities"])
        self.channels = tuple(metadata["channels"])
        self.train_dice: dict[str, float | None] = dict(metadata.get("train_dice", {}))

    @torch.no_grad()
    def __call__(self, image: Tensor) -> Tensor:
        if image.ndim != 4 or len(image) != len(self.modalities):
            raise SpecError(
                f"the segmenter was trained on the modalities {', '.join(self.modalities)} of (M, R, A, S), not on an "
                f"image of shape {tuple(image.shape)}; train it on the data set that is scored"
            )
        image = image.to(self._device, torch.float32)
        # Two at a time is also what a CPU's kernels are fast at.
        logits, mirrored = self._network(torch.stack([image, image.flip(1)]))
        return (logits + mirrored.flip(1)) > 0


def write_segmenter(path: str | Path, network: SegmenterNetwork | None, metadata: Mapping[str, Any]) -> None:
    """Writes a network, or that there is none, with what it is; equal contents give equal bytes."""
    state = _once(network.state_dict()) if network else {}
    # One entry: safetensors writes several in an order that changes from run to run.
    text = json.dumps(dict(metadata) | {"off": network is None}, sort_keys=True)
    with atomic_file(path) as partial:
        save_file({k: v.detach().cpu().contiguous() for k, v in state.items()}, partial, metadata={METADATA: text})


def read_segmenter(path: str | Path, device: torch.device) -> Segmenter | None:
    """What ``write_segmenter`` wrote; None where there is no network.

    Raises:
        SpecError: the file is missing, damaged, or none of a segmenter.
    """
    remedy = "delete it and run again"
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(METADATA, "{}"))
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise SpecError(f"cannot read the segmenter {path} ({error}); {remedy}") from None
    if "off" not in metadata:
        raise SpecError(f"{path} is no segmenter, though a safetensors file; {remedy}")
    if metadata["off"]:
        return None
    width = metadata["spec"]["segmenter"]["channels"]
    network = SegmenterNetwork(len(metadata["modalities"]), len(metadata["channels"]), width, metadata["depth"])
    expected = {name: tensor.shape for name, tensor in _once(network.state_dict()).items()}
    if {name: tensor.shape for name, tensor in state.items()} != expected:
        raise SpecError(f"{path} does not hold the tensors of the segmenter's network; {remedy}")
    network.load_state_dict(state, strict=False)
    return Segmenter(network, metadata, device)


def _once(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors without MONAI's second names of the same ones, which a file cannot share."""
    return {name: tensor for name, tensor in state.items() if not name.startswith("unet.skip_layers.")}
