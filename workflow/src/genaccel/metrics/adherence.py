"""Mask adherence: whether a synthetic volume shows the mask that it was sampled for, as a segmenter finds it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from genaccel.metrics.segmenter.network import Segmenter, read_segmenter


def load_segmenter(path: str | Path, device: torch.device) -> Segmenter | None:
    """The segmenter that ``python -m genaccel.metrics.segmenter`` wrote; None where the file says that it is off.

    It maps an image, (M, R, A, S) in [-1, 1], to the mask channels that it finds, (C, R, A, S) bool; its attributes
    ``modalities`` and ``channels`` name both, ``train_dice`` says how well it does on what it was trained on.

    Raises:
        SpecError: the file is missing, damaged, or none of a segmenter.
    """
    return read_segmenter(path, device)


def dice(predicted: Tensor, target: Tensor) -> float:
    """Overlap of two masks of one shape: twice the intersection over the sum of both.

    NaN where ``target`` is empty: it would only say whether anything at all was found.

    Source: Dice, Measures of the amount of ecologic association between species, Ecology 26(3), 1945.
    """
    predicted, target = predicted.bool(), target.bool()
    if predicted.shape != target.shape:
        raise ValueError(f"Dice compares masks of one shape, not {tuple(predicted.shape)} with {tuple(target.shape)}")
    if not target.any():
        return float("nan")
    return 2 * int((predicted & target).sum()) / (int(predicted.sum()) + int(target.sum()))
