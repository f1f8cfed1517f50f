"""The manifest: what the stage hands to all that follow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from safetensors import SafetensorError
from safetensors.numpy import load_file

from genaccel.atomic import atomic_file, file_sha256
from genaccel.data.grid import Grid
from genaccel.spec import Spec

VERSION = 1


class Intensity(Spec):
    """What a source volume held before scaling, over all its voxels, background included.

    Attributes:
        p_low, p_high: the percentiles that became -1 and 1.
        min, max, mean, std: in the file's own units.
    """

    p_low: float
    p_high: float
    min: float
    max: float
    mean: float
    std: float


class Source(BaseModel):
    """A file that a subject was made from.

    Attributes:
        path: as the sample table gave it.
        spacing: voxel sides in mm along the file's axes.
        orientation: where these point, such as LPS.
        qform_code, sform_code: NIfTI's names for the space that these transforms lead to: 0 unset, 1 scanner,
            2 aligned, 3 Talairach, 4 MNI152. nibabel follows the sform where both are set.
        intensity: of an image; None for a mask.
    """

    # Closed like a Spec, but none: its `sha256` is a value, of the file, and not a method.
    model_config = Spec.model_config

    path: str
    sha256: str
    shape: tuple[int, int, int]
    spacing: tuple[float, float, float]
    orientation: str
    qform_code: int = 0
    sform_code: int = 0
    intensity: Intensity | None = None


class Subject(Spec):
    """One prepared subject.

    Attributes:
        volume: safetensors file, relative to the manifest's folder.
        sources: by ``mask`` and modality.
        grid: how the model's grid lies on the mask's.
        label_voxels: voxels of each channel on the model's grid.
        source_label_voxels: the same on the mask's own grid.
        warnings: what a person should look at, though it is no error.
    """

    subject: str
    split: Literal["train", "validation", "test"]
    volume: str
    volume_sha256: str
    sources: dict[str, Source]
    grid: Grid
    label_voxels: dict[str, int]
    source_label_voxels: dict[str, int]
    warnings: tuple[str, ...] = ()


class Skipped(Spec):
    """A subject that was left out by ``on_error: skip``.

    Attributes:
        reason: on one line, what is wrong with which file, and what to do.
    """

    subject: str
    reason: str


class Manifest(Spec):
    """A prepared data set.

    Attributes:
        kind: ``simulated`` subjects are no one's; whoever shows them says so.
        modalities: the channels of each image, in order.
        channels: the channels of each mask, in order.
        shape: of the model's grid along R, A, S.
        subjects: sorted by name.
        skipped: sorted by name; splits are drawn with them, so that leaving one out moves no other.
    """

    version: Literal[1] = VERSION
    dataset: str
    kind: Literal["real", "simulated"]
    modalities: tuple[str, ...]
    channels: tuple[str, ...]
    shape: tuple[int, int, int]
    subjects: tuple[Subject, ...]
    skipped: tuple[Skipped, ...] = ()

    def in_split(self, split: str) -> tuple[Subject, ...]:
        return tuple(subject for subject in self.subjects if subject.split == split)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Writes JSON; the same manifest gives the same bytes."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=1, sort_keys=True, allow_nan=False)
    with atomic_file(path) as partial:
        partial.write_text(text + "\n")


def read_manifest(path: Path) -> Manifest:
    """Reads and checks a manifest.

    Raises:
        ValueError: it is none, or of another version.
        FileNotFoundError: there is none.
    """
    path = Path(path)
    try:
        data = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no manifest ({error}); delete it and run again") from None
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise ValueError(f"{path} has version {version!r}, this program reads {VERSION}; delete it and run again")
    return Manifest.build(data, where=str(path))


def load_subject(manifest_path: Path, subject: Subject) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """A subject's image, (M, R, A, S) in [-1, 1], and its mask channels, (C, R, A, S) of 0 and 1.

    Raises:
        ValueError: the file is missing, damaged, or not on the manifest's grid.
    """
    path = Path(manifest_path).parent / subject.volume
    if path.is_file() and file_sha256(path) != subject.volume_sha256:
        raise ValueError(
            f"{subject.subject}: {path} was changed since it was written; delete {manifest_path} and run again"
        )
    try:
        tensors = load_file(path)
        image, labels = tensors["image"], tensors["labels"]
    except (OSError, KeyError, SafetensorError) as error:
        raise ValueError(
            f"{subject.subject}: cannot read {path} ({error}); delete {manifest_path} and run again"
        ) from None
    if image.shape[1:] != subject.grid.target_shape or labels.shape[1:] != subject.grid.target_shape:
        raise ValueError(
            f"{subject.subject}: {path} holds shapes {image.shape} and {labels.shape}, the manifest says "
            f"{subject.grid.target_shape}; delete {manifest_path} and run again"
        )
    return image, labels
