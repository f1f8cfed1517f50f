"""Between NIfTI's axes in RAS orientation, (C, X, Y, Z), and the axes that a network was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.spec import SpecError, nearest

Volume = TypeVar("Volume", np.ndarray, Tensor)

_AXIS = {"R": 0, "A": 1, "S": 2, "L": 0, "P": 1, "I": 2}
_FLIPPED = frozenset("LPI")


def to_model(volume: Volume, axes: Sequence[str]) -> Volume:
    """A volume in RAS orientation along the network's axes.

    Args:
        volume: (..., X, Y, Z), an array or a tensor, with X growing to the right, Y to the front, Z upwards.
        axes: where D, H and W grow to, e.g. ``("S", "A", "R")``: D = Z, H = Y, W = X; ``("S", "P", "L")`` also
            reverses Y and X.

    Returns:
        (..., D, H, W), contiguous, same type.
    """
    _check(volume, axes)
    order = [_AXIS[axis] for axis in axes]
    flips = [position - 3 for position, axis in enumerate(axes) if axis in _FLIPPED]
    return _flip(_transpose(volume, order), flips)


def from_model(volume: Volume, axes: Sequence[str]) -> Volume:
    """The exact inverse of ``to_model``; (..., D, H, W) -> (..., X, Y, Z) in RAS orientation."""
    _check(volume, axes)
    order = [[_AXIS[axis] for axis in axes].index(line) for line in range(3)]
    flips = [_AXIS[axis] - 3 for axis in axes if axis in _FLIPPED]
    return _flip(_transpose(volume, order), flips)


def encode_condition(labels: Tensor, channels: Sequence[str], spec: MedDDPMSpec) -> Tensor:
    """Masks as the network takes them.

    Args:
        labels: masks of 0 and 1 in RAS orientation, (C, X, Y, Z), uint8.
        channels: their names, C of them.
        spec: whose ``condition`` gives the channels and their order, and whose ``axes`` gives the layout.

    Returns:
        (C', D, H, W), FP32, -1 outside and +1 inside.

    Raises:
        SpecError: where the network asks for a channel that is not stored, or a mask holds more than 0 and 1.
    """
    if labels.ndim != 4 or len(labels) != len(channels):
        raise SpecError(f"masks of shape {tuple(labels.shape)} for {len(channels)} channels; expected (C, X, Y, Z)")
    for name in spec.condition:
        if name not in channels:
            raise SpecError(
                f"models.<name>.condition: the prepared masks have no channel {name!r}; {nearest(name, channels)}. "
                "The channels are the keys of data.<name>.labels"
            )
    masks = labels[[list(channels).index(name) for name in spec.condition]]
    if masks.numel() and masks.max() > 1:
        count = int((masks > 1).sum())
        raise SpecError(f"masks hold values above 1 in {count} voxels, so they are labels, not masks of 0 and 1")
    return to_model(masks, spec.axes).float() * 2 - 1


def _check(volume: Volume, axes: Sequence[str]) -> None:
    if volume.ndim < 3:
        raise ValueError(f"layout: the volume has shape {tuple(volume.shape)}; its last three axes must be spatial")
    if len(axes) != 3 or not set(axes) <= set(_AXIS) or {_AXIS[axis] for axis in axes} != {0, 1, 2}:
        raise ValueError(f"layout: axes {list(axes)}; use one of R/L, one of A/P and one of S/I, e.g. ['S', 'A', 'R']")


def _transpose(volume: Volume, order: list[int]) -> Volume:
    leading = volume.ndim - 3
    whole = [*range(leading), *(leading + axis for axis in order)]
    return volume.permute(whole) if isinstance(volume, Tensor) else volume.transpose(whole)


def _flip(volume: Volume, axes: list[int]) -> Volume:
    if isinstance(volume, Tensor):
        return torch.flip(volume, axes).contiguous()
    return np.ascontiguousarray(np.flip(volume, axes))
