"""Reads what the stage `sample` wrote: the index of a folder and its volumes. Needs no torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict
from safetensors import SafetensorError
from safetensors.numpy import load_file

from genaccel.data.manifest import Manifest
from genaccel.spec import Spec, SpecError

Case = dict[str, str | int | float]
"""Of a ``genaccel.measurement.Result``."""


class _Record(Spec):
    # Open, unlike the settings: a key that the sampler adds for the record is no fault of the folder.
    model_config = ConfigDict(extra="ignore")


class SampledVolume(_Record):
    """One synthetic volume: the mask's subject, the number of the sample and its file in the folder."""

    subject: str
    sample: int
    volume: str


class SampleIndex(_Record):
    """``index.json``: how the volumes of a folder were made, and which they are."""

    model: str
    sampler: str
    steps: int
    variant: str
    eta: float | None = None
    order: int | None = None
    seed: int
    spec_sha256: str
    weights_sha256: str
    split: str
    volumes: tuple[SampledVolume, ...]


def read_index(folder: Path) -> SampleIndex:
    """The index of a folder of samples, its volumes sorted by subject and sample.

    Raises:
        SpecError: the index is no such index, or a volume that it lists is missing, listed twice, or in the
            folder without being listed.
        FileNotFoundError: there is no index.
    """
    path = Path(folder) / "index.json"
    try:
        data = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no index of samples ({error}); delete {path.parent} and run again") from None
    index = SampleIndex.build(data, where=str(path))
    listed = [volume.volume for volume in index.volumes]
    there = {file.name for file in path.parent.glob("*.safetensors")}
    faults = {
        "twice": {name for name in listed if listed.count(name) > 1},
        "without a file": set(listed) - there,
        "not at all, though they lie there": there - set(listed),
    }
    for fault, names in faults.items():
        if names:
            raise SpecError(f"{path} lists {_some(names)} {fault}; delete {path.parent} and run again")
    return index.model_copy(update={"volumes": tuple(sorted(index.volumes, key=lambda v: (v.subject, v.sample)))})


def by_subject(index: SampleIndex, manifest: Manifest) -> dict[str, list[SampledVolume]]:
    """The samples of every subject of the index's split.

    Raises:
        SpecError: a subject of the split has fewer samples than another, or a sample's subject is not in the
            split; naming them.
    """
    found: dict[str, list[SampledVolume]] = {subject.subject: [] for subject in manifest.in_split(index.split)}
    if not found:
        raise SpecError(f"the manifest has no subject in the split {index.split!r}, which was sampled; check `split`")
    strangers = {volume.subject for volume in index.volumes if volume.subject not in found}
    if strangers:
        raise SpecError(
            f"there are samples of {_some(strangers)}, which the manifest does not have in the split "
            f"{index.split!r}; sample and score the same manifest"
        )
    for volume in index.volumes:
        found[volume.subject].append(volume)
    numbers = {volume.sample for volume in index.volumes} or {0}
    lacking = {name for name, volumes in found.items() if {volume.sample for volume in volumes} != numbers}
    if lacking:
        raise SpecError(
            f"of {len(found)} subjects in the split {index.split!r}, {len(lacking)} lack samples that others have or "
            f"should have: {_some(lacking)}; delete the folder of samples and run again"
        )
    return found


def sampling_case(manifest: Manifest, index: SampleIndex) -> Case:
    """What tells these samples from others of the same model."""
    size = "x".join(map(str, manifest.shape))
    per_mask = len({volume.sample for volume in index.volumes})
    case: Case = {"sampler": index.sampler, "steps": index.steps, "split": index.split, "size": size}
    options = {"eta": index.eta, "order": index.order}
    return case | {"per_mask": per_mask} | {name: value for name, value in options.items() if value is not None}


def load_sample(folder: Path, volume: SampledVolume, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """A synthetic image, (M, R, A, S) in [-1, 1] on the model's grid.

    Args:
        folder: holds the index.
        volume: one of the index's.
        shape: (M, R, A, S) of the real image that it stands beside.

    Raises:
        SpecError: damaged, of another shape, or holding values that are not finite.
    """
    path = Path(folder) / volume.volume
    try:
        image = load_file(path)["image"]
    except (OSError, KeyError, SafetensorError) as error:
        raise SpecError(f"cannot read {path} ({error}); delete {path.parent} and run again") from None
    if image.shape != tuple(shape):
        raise SpecError(
            f"{path} has shape {image.shape}, the real image {tuple(shape)} (modality, R, A, S); "
            "sample and score the same manifest"
        )
    check_finite(image, str(path))
    return image


def check_finite(image: NDArray[np.float32], where: str) -> None:
    """Raises SpecError, with their count, where values are NaN or infinite."""
    bad = int(image.size - np.isfinite(image).sum())
    if bad:
        raise SpecError(
            f"{where} holds {bad} of {image.size} voxels that are NaN or infinite; scores of it would mean nothing. "
            "Check the training's loss, then delete it, or its folder of samples, and run again"
        )


def _some(names: set[str]) -> str:
    shown = sorted(names)[:5]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
