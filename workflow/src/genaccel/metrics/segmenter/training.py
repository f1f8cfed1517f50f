"""Training of the segmenter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from genaccel.data.manifest import Manifest
from genaccel.device import Device
from genaccel.metrics.segmenter.network import SegmenterNetwork
from genaccel.metrics.segmenter.patches import Pair, patch_at
from genaccel.metrics.spec import SegmenterSpec
from genaccel.spec import SpecError

REPORTS = 10


def channel_weights(manifest: Manifest) -> Tensor:
    """How much a mask voxel of each channel counts in the cross-entropy over one outside, (C,).

    The root of how rare it is: uncorrected, the network never finds a tumour of a few voxels; in full, it finds
    tumours everywhere.
    """
    subjects = manifest.in_split("train")
    voxels = math.prod(manifest.shape) * len(subjects)
    counts = [sum(subject.label_voxels[channel] for subject in subjects) for channel in manifest.channels]
    return torch.tensor([math.sqrt(max(voxels - count, 1) / max(count, 1)) for count in counts])


def train(
    network: SegmenterNetwork,
    volumes: Sequence[Callable[[], Pair]],
    weights: Tensor,
    spec: SegmenterSpec,
    device: Device,
) -> None:
    """Adam on soft Dice plus cross-entropy, both of a sigmoid a channel, with a rate that rises and falls (1cycle).

    Args:
        network: on the device; changed in place.
        volumes: of ``training_split``.
        weights: of ``channel_weights``.

    Raises:
        SpecError: the loss is no longer finite.

    Source: Isensee et al., nnU-Net, Nature Methods 18, 2021 (loss, patches); Smith and Topin, Super-convergence,
    arXiv 1708.07120 (rate).
    """
    # Here rather than on top: MONAI imports whatever is installed, which takes several seconds.
    from monai.losses.dice import DiceLoss

    # Over the batch as one: a patch without tumour would otherwise count as much as one with.
    overlap = DiceLoss(sigmoid=True, batch=True)
    weights = weights.view(-1, 1, 1, 1).to(device.torch)
    optimizer = torch.optim.Adam(network.parameters(), lr=spec.learning_rate)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, spec.learning_rate, total_steps=spec.steps)
    every = -(-spec.steps // REPORTS)
    network.train()
    for step in range(spec.steps):
        positions = range(step * spec.batch, (step + 1) * spec.batch)
        batch = [patch_at(volumes, position, network.multiple, spec.seed, device) for position in positions]
        image, mask = (torch.stack(tensors) for tensors in zip(*batch, strict=True))
        logits = network(image)
        loss = overlap(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask, pos_weight=weights)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        device.mark_step()
        optimizer.step()
        device.mark_step()
        rate.step()
        if (step + 1) % every == 0 or step + 1 == spec.steps:
            _report(step + 1, spec.steps, loss.item())


def _report(step: int, steps: int, loss: float) -> None:
    print(f"segmenter: step {step} of {steps}, loss {loss:.4f}", flush=True)
    if not math.isfinite(loss):
        raise SpecError(f"the segmenter's loss is {loss} at step {step}; lower metrics.segmenter.learning_rate")
