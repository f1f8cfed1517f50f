"""What the segmenter learns from: patches of real volumes, varied so that it also reads imperfect synthetic ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from genaccel.data.manifest import Manifest, load_subject
from genaccel.device import Device
from genaccel.seeds import derive_seed
from genaccel.spec import SpecError

CACHE_BYTES = 4 * 2**30
SHARE = 0.6
"""Side of a patch over that of the volume: a fifth of the voxels, so five times the steps in the same time."""

Pair = tuple[Tensor, Tensor]
"""An image, (M, R, A, S) in [-1, 1], and its mask channels, (C, R, A, S) of 0 and 1; float32."""


def training_split(manifest_path: Path, manifest: Manifest) -> list[Callable[[], Pair]]:
    """The training volumes, each read when called, and kept where all of them fit in 4 GiB of memory.

    Raises:
        SpecError: there is none.
    """
    subjects = manifest.in_split("train")
    if not subjects:
        raise SpecError(
            f"the segmenter learns from the training split, which is empty among {len(manifest.subjects)} subjects of "
            f"{manifest.dataset}; raise data.{manifest.dataset}.split.train, or set metrics.segmenter.steps: 0"
        )
    size = 4 * math.prod(manifest.shape) * (len(manifest.modalities) + len(manifest.channels))

    def read(index: int) -> Pair:
        image, labels = load_subject(manifest_path, subjects[index])
        return torch.from_numpy(image), torch.from_numpy(labels).float()

    if size * len(subjects) <= CACHE_BYTES:
        read = functools.cache(read)
    return [functools.partial(read, index) for index in range(len(subjects))]


def patch_shape(shape: Sequence[int], multiple: int) -> tuple[int, ...]:
    """Voxels a side of the patches of a grid: a share of it, rounded up to the network's multiple where that fits."""
    return tuple(min(side, math.ceil(SHARE * side / multiple) * multiple) for side in shape)


def patch_at(volumes: Sequence[Callable[[], Pair]], position: int, multiple: int, seed: int, device: Device) -> Pair:
    """The varied patch at a position of training, on the device; a function of the arguments alone.

    Passes over all volumes follow each other, each in an order of its own.
    """
    epoch, place = divmod(position, len(volumes))
    image, mask = volumes[_permutation(len(volumes), derive_seed(seed, "order", epoch))[place]]()
    host = torch.Generator().manual_seed(derive_seed(seed, "vary", position))
    noise = device.generator(derive_seed(seed, "noise", position))
    image, mask = cut(image, mask, patch_shape(image.shape[1:], multiple), host)
    return vary(image.to(device.torch), mask.to(device.torch), host, noise)


@functools.lru_cache(maxsize=2)
def _permutation(n: int, seed: int) -> list[int]:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


def cut(image: Tensor, mask: Tensor, shape: Sequence[int], generator: torch.Generator) -> Pair:
    """A patch that holds a voxel of a channel drawn first, so that small channels are in as many as large ones.

    Args:
        image, mask: a ``Pair``.
        shape: voxels a side, at most the volume's.
        generator: on the CPU.
    """

    def draw(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    present = [channel for channel in mask if channel.any()] or [torch.ones_like(image[0])]
    voxels = present[draw(len(present))].nonzero()
    where = [slice(None)]
    for centre, side, size in zip(voxels[draw(len(voxels))].tolist(), shape, image.shape[1:], strict=True):
        start = min(max(centre - draw(side), 0), size - side)
        where.append(slice(start, start + side))
    return image[tuple(where)], mask[tuple(where)]


def vary(image: Tensor, mask: Tensor, host: torch.Generator, noise: torch.Generator) -> Pair:
    """A patch as another scanner, or an imperfect sampler, would have made it.

    Mirrored left to right half of the time; intensities with another gamma, contrast and offset, and some noise.
    All of it light: the demo's tumours are darker than the brain by a tenth of the intensity scale alone.

    Args:
        image, mask: a ``Pair``.
        host: draws what is done, on the CPU.
        noise: draws the noise, on the image's device or on the host.
    """
    flip, gamma, contrast, offset, level = torch.rand(5, generator=host).tolist()
    if flip < 0.5:
        image, mask = image.flip(1), mask.flip(1)
    image = (image / 2 + 0.5).clamp(0, 1) ** math.exp(0.2 * (2 * gamma - 1))
    image = (2 * image - 1) * (0.9 + 0.2 * contrast) + 0.05 * (2 * offset - 1)
    drawn = torch.randn(image.shape, generator=noise, device=noise.device).to(image.device)
    return image + 0.05 * level * drawn, mask
