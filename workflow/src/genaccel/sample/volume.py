"""One synthetic volume on disk: on the model's grid for scoring, on the mask's own grid for its users."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from genaccel.atomic import atomic_file
from genaccel.data.grid import to_source
from genaccel.data.manifest import Subject

BACKGROUND = -1.0
"""Intensity outside the model's grid: what the darkest percentile was scaled to."""


def volume_name(subject: Subject, sample: int) -> str:
    return f"{subject.subject}-{sample}"


def is_written(folder: Path, subject: Subject, sample: int) -> bool:
    """Whether an earlier attempt wrote this volume whole: its side-car is written last."""
    return (folder / f"{volume_name(subject, sample)}.json").is_file()


def write_volume(
    folder: Path,
    subject: Subject,
    sample: int,
    image: NDArray[np.float32],
    modalities: Sequence[str],
    record: dict[str, Any],
) -> None:
    """Writes ``<subject>-<sample>`` as safetensors, one NIfTI a modality, and a JSON side-car.

    Args:
        image: (M, X, Y, Z) on the model's grid in RAS orientation, within [-1, 1].
        modalities: M names.
        record: what the side-car says of sampler, seed and weights.
    """
    name = volume_name(subject, sample)
    with atomic_file(folder / f"{name}.safetensors") as partial:
        save_file({"image": np.ascontiguousarray(image)}, partial)
    files = {}
    qform, sform = _codes(subject)
    for modality, channel in zip(modalities, image, strict=True):
        files[modality] = f"{name}_{modality}.nii.gz"
        nifti = nib.Nifti1Image(to_source(channel, subject.grid, fill=BACKGROUND), np.array(subject.grid.source_affine))
        nifti.set_qform(nifti.affine, code=qform)
        nifti.set_sform(nifti.affine, code=sform)
        with atomic_file(folder / files[modality]) as partial:
            nib.save(nifti, partial)
    side_car = record | {"subject": subject.subject, "sample": sample, "files": files, "intensity": "scaled to [-1, 1]"}
    with atomic_file(folder / f"{name}.json") as partial:
        partial.write_text(json.dumps(side_car, indent=1, sort_keys=True) + "\n")


def _codes(subject: Subject) -> tuple[int, int]:
    """Which of a header's two transforms hold, and what they lead to: as in the mask's, so that viewers overlay both.

    A mask that sets neither is written as scanner coordinates: its affine was assumed, and is now said.
    """
    mask = subject.sources.get("mask")
    codes = (mask.qform_code, mask.sform_code) if mask else (0, 0)
    return codes if any(codes) else (1, 1)
