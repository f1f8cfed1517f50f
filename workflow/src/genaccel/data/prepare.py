"""One subject from its files to a prepared volume."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from genaccel.atomic import file_sha256
from genaccel.data.faults import InputFault
from genaccel.data.grid import Grid, plan_grid, to_grid, to_source
from genaccel.data.intensity import scale_intensity
from genaccel.data.labels import check_brain, count_voxels, derive_brain, named_labels, split_channels
from genaccel.data.manifest import Source, Subject
from genaccel.data.nifti import Volume, check_same_grid, read_labels, read_volume
from genaccel.data.samples import Sample
from genaccel.data.spec import DataSpec
from genaccel.data.split import Split


def prepare_subject(sample: Sample, split: Split, spec: DataSpec, folder: Path, volumes: str) -> Subject:
    """Writes ``folder/<subject>.safetensors`` and describes it.

    The file holds ``image``, float32 (M, R, A, S) in [-1, 1], and ``labels``, uint8 (C, R, A, S) of 0 and 1.

    Args:
        volumes: where ``folder`` will lie at last, relative to the manifest's folder.

    Raises:
        InputFault: a file that cannot be used. Nothing was written then.
    """
    mask = read_labels(sample.mask)
    labels = named_labels(mask.array, spec, mask.name)
    grid = plan_grid(mask.shape, mask.affine, spec.shape, spec.fit, spec.spacing)
    sources = {"mask": _source(sample.mask, mask)}
    foreground, bright = np.zeros(mask.shape, dtype=bool), np.zeros(mask.shape, dtype=bool)
    channels = []
    for modality in spec.modalities:
        image = read_volume(sample.images[modality])
        check_same_grid(image, mask)
        scaled, intensity = scale_intensity(image.array, spec.percentiles, image.name)
        sources[modality] = _source(sample.images[modality], image).model_copy(update={"intensity": intensity})
        # Beyond the field of view lies background, which is -1 once scaled.
        channels.append(to_grid(scaled, grid, order=1, fill=-1))
        foreground |= image.array != 0
        bright |= image.array > intensity.mean
    given = labels.any()
    if spec.derive_brain == "nonzero":
        labels = derive_brain(labels, foreground, spec.labels, mask.name)
    else:
        check_brain(labels, foreground, bright, spec.labels, mask.name)
    on_grid = to_grid(labels, grid, order=0, fill=0)
    before, after = count_voxels(labels, spec.labels), count_voxels(on_grid, spec.labels)
    if not any(after.values()):
        raise InputFault(
            f"{mask.name} is empty on the model's grid: it leaves none of {int((labels > 0).sum()):,} labelled voxels.",
            "Enlarge `data.shape`, or set fit: resample, which keeps the whole field of view.",
        )
    file = folder / f"{sample.subject}.safetensors"
    save_file({"image": np.stack(channels), "labels": np.ascontiguousarray(split_channels(on_grid, spec.labels))}, file)
    return Subject(
        subject=sample.subject,
        split=split,
        volume=f"{volumes}/{file.name}",
        volume_sha256=file_sha256(file),
        sources=sources,
        grid=grid,
        label_voxels=after,
        source_label_voxels=before,
        warnings=(
            *_unoriented(mask),
            *([] if given else [f"{mask.name} is empty: there is no label but the brain's, which was derived"]),
            *_lost(before, labels, grid, spec),
            *_vanished(before, after),
        ),
    )


def _source(path: Path, volume: Volume) -> Source:
    return Source(
        path=str(path),
        sha256=volume.sha256,
        shape=volume.shape,
        spacing=volume.spacing,
        orientation=volume.orientation,
        qform_code=volume.codes[0],
        sform_code=volume.codes[1],
    )


def _unoriented(mask: Volume) -> list[str]:
    if mask.oriented:
        return []
    return [f"{mask.name} sets neither sform nor qform, so that its orientation ({mask.orientation}) is assumed"]


def _lost(before: dict[str, int], labels: NDArray[np.int32], grid: Grid, spec: DataSpec) -> list[str]:
    """Channels that the model's grid does not wholly cover."""
    covered = _covered(grid)
    kept = count_voxels(np.where(covered, labels, 0), spec.labels)
    return [
        f"the grid cuts off {before[channel] - kept[channel]:,} of {before[channel]:,} voxels of channel `{channel}`"
        for channel in before
        if kept[channel] < before[channel]
    ]


def _covered(grid: Grid) -> NDArray[np.bool_]:
    """Voxels of the mask's grid that the model's grid covers."""
    return to_source(np.ones(grid.target_shape, np.uint8), grid, fill=0, order=0) > 0


def _vanished(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """Channels without a voxel left. No fault as long as another has one: a coarse grid swallows a lesion in image
    and mask alike, so that the two still fit each other."""
    return [
        f"channel `{channel}` has {before[channel]:,} voxels in the mask but none on the model's grid"
        for channel in before
        if before[channel] and not after[channel]
    ]
