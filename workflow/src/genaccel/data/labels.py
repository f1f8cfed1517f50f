"""From a mask's label numbers to named binary channels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from genaccel.data.faults import InputFault, listing, plural
from genaccel.data.spec import DataSpec

# Raw BraTS volumes are mostly background. One that has next to none was scaled, so that its background
# is no longer 0 and "non-zero" would be everywhere.
LEAST_BACKGROUND = 0.01
# A brain fills most of a skull-stripped head and a third of a whole one; enhancing tumour, which is label 4 of
# raw BraTS 2018-2021, stays far below this.
LEAST_BRAIN = 0.2
# "Non-zero" shows the head where the background is exactly 0, as after skull-stripping. Noise and scaled
# backgrounds leave fewer zeros than this.
CLEAN_BACKGROUND = 1 / 3


def named_labels(mask: NDArray[np.int32], spec: DataSpec, name: str = "mask") -> NDArray[np.int32]:
    """Renames labels by ``spec.remap`` and checks that each belongs to a channel.

    Args:
        mask: label numbers, any shape; 0 is background.
        name: the file's, for messages.

    Returns:
        The mask with labels renamed, all at once (so that two may swap), and ignored ones set to 0.

    Raises:
        InputFault: a label that neither ``spec.labels`` nor ``spec.ignore_labels`` names; a mask without
            any label, unless the brain is to be derived.
    """
    numbers, counts = np.unique(mask, return_counts=True)
    known = {label for members in spec.labels.values() for label in members}
    strangers = []
    renamed = np.zeros_like(mask)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        label = spec.remap.get(number, number)
        if label in known:
            renamed[mask == number] = label
        elif label and label not in spec.ignore_labels:
            was = f" ({number} before `data.remap`)" if label != number else ""
            strangers.append(f"label {label}{was} in {plural(count, 'voxel')}")
    if strangers:
        raise InputFault(
            f"{name} holds {listing(strangers)}, which no channel of `data.labels` names.",
            "Add it to a channel, or to `data.ignore_labels`.",
        )
    if not renamed.any() and spec.derive_brain is None:
        raise InputFault(
            f"{name} is empty: none of its {mask.size:,} voxels holds a label of `data.labels`.",
            "Give the subject's segmentation, or leave the subject out.",
        )
    return renamed


def derive_brain(
    mask: NDArray[np.int32], foreground: NDArray[np.bool_], labels: Mapping[str, tuple[int, ...]], name: str = "mask"
) -> NDArray[np.int32]:
    """Labels the brain of raw BraTS files, whose masks hold tumours alone.

    Args:
        mask: label numbers from ``named_labels``.
        foreground: where any modality differs from its background, which raw skull-stripped files hold
            as exactly 0. Of the same shape.
        labels: ``DataSpec.labels``; the first number of ``brain`` is filled in.

    Returns:
        The mask with the brain's label at every foreground voxel that no other channel's label covers.

    Raises:
        InputFault: the mask holds the brain's label already, or hardly any voxel is background.
    """
    brain = labels["brain"][0]
    if already := int(np.count_nonzero(mask == brain)):
        raise InputFault(
            f"{name} holds label {brain} in {plural(already, 'voxel')}, the very label that `data.derive_brain` fills.",
            "Rename it with `data.remap` (raw BraTS 2018-2021: {4: 3}) or, if it is the brain, set derive_brain: null.",
        )
    background = foreground.size - int(np.count_nonzero(foreground))
    if background < LEAST_BACKGROUND * foreground.size:
        raise InputFault(
            f"{name}: only {background:,} of {foreground.size:,} voxels are 0 in every modality, so that "
            "`data.derive_brain` would call everything brain.",
            "Give raw files, whose background is 0; or, with a mask that has the brain, set derive_brain: null.",
        )
    others = [label for channel, members in labels.items() if channel != "brain" for label in members]
    return np.where(foreground & ~np.isin(mask, others), np.int32(brain), mask)


def check_brain(
    mask: NDArray[np.int32],
    foreground: NDArray[np.bool_],
    bright: NDArray[np.bool_],
    labels: Mapping[str, tuple[int, ...]],
    name: str = "mask",
) -> None:
    """Refuses a channel `brain` that can be no brain: raw BraTS masks hold tumours alone.

    Args:
        mask: label numbers from ``named_labels``.
        foreground: where any modality is not 0.
        bright: where any modality exceeds its mean: the head, where the background is noise or not 0.
        labels: ``DataSpec.labels``; without a channel `brain` nothing is checked.

    Raises:
        InputFault: no voxel of that channel, or in fewer than 20 % of the voxels that the head fills.
    """
    if "brain" not in labels:
        return
    brain = np.isin(mask, labels["brain"])
    numbers = f"label {listing(list(map(str, labels['brain'])))}"
    if not brain.any():
        found = listing([str(number) for number in np.unique(mask) if number])
        raise InputFault(
            f"{name} has no voxel of channel `brain` ({numbers}); it holds label {found}.",
            "Raw BraTS masks hold the tumour alone: set derive_brain: nonzero and, for 2018-2021, remap: {4: 3}; "
            "else mend `data.labels`.",
        )
    clean = np.count_nonzero(~foreground) >= CLEAN_BACKGROUND * foreground.size
    head = foreground if clean else bright
    covered, size = int(np.count_nonzero(brain & head)), int(np.count_nonzero(head))
    if covered < LEAST_BRAIN * size:
        voxels = "non-zero voxels of the images" if clean else "voxels above their image's mean"
        raise InputFault(
            f"{name}: channel `brain` ({numbers}) covers {covered:,} of {size:,} {voxels}, {covered / size:.1%}: "
            "too few for a brain.",
            "Raw BraTS 2018-2021 calls enhancing tumour 4 and has no brain: set remap: {4: 3} and "
            "derive_brain: nonzero; if this is right, give the channel another name.",
        )


def split_channels(mask: NDArray[np.int32], labels: Mapping[str, tuple[int, ...]]) -> NDArray[np.uint8]:
    """(X, Y, Z) label numbers -> (C, X, Y, Z) of 0 and 1, channels in the order of ``labels``; they may overlap."""
    return np.stack([np.isin(mask, members) for members in labels.values()]).astype(np.uint8)


def count_voxels(mask: NDArray[np.int32], labels: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Voxels of each channel."""
    return {channel: int(np.isin(mask, members).sum()) for channel, members in labels.items()}
