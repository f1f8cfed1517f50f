"""Bytes on disk that the jobs of a study will write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch

from genaccel.config.compose import Config
from genaccel.data.samples import read_samples
from genaccel.data.spec import DataSpec
from genaccel.data.split import Split, split_subjects
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.med_ddpm.unet import UNet
from genaccel.plan.dag import Job
from genaccel.sample.spec import SampleJob
from genaccel.train.checkpoint import KEEP
from genaccel.train.spec import TrainJob

TEMPLATE_MM = (177, 213, 171)
"""Sides of the simulated subjects' field of view."""

SIMULATED_BYTES = (0.5, 0.1)
"""Bytes a voxel of a simulated image and mask, compressed; seen at 2 to 4 mm."""

NIFTI_BYTES = 0.93 * 4
"""Bytes a voxel of a synthetic image in .nii.gz: noise in all of FP32's digits hardly compresses."""

LOSS_BYTES = 34
"""A line of loss.csv."""

HEADERS = 8
"""Masks whose headers are read for the size of a data set's own grids."""


class DataSet:
    """What a data set's settings and sample table tell of its subjects, without reading an image."""

    def __init__(self, data: DataSpec) -> None:
        self.data = data
        if data.samples is None:
            self._masks: list[Path] = []
            given = {f"sim-{index:04d}": None for index in range(data.simulated.subjects)}
        else:
            samples = read_samples(Path(data.samples), data.modalities)
            self._masks = [sample.mask for sample in samples]
            given = {sample.subject: sample.split for sample in samples}
        fixed = {subject: split for subject, split in given.items() if split}
        splits = list(split_subjects(given, data.split, fixed).values())
        self.splits: Mapping[Split, int] = {split: splits.count(split) for split in splits}

    @property
    def subjects(self) -> int:
        return sum(self.splits.values())

    @property
    def source_voxels(self) -> float:
        """Voxels of a mask's own grid; the mean of a few where there are files."""
        if not self._masks:
            return math.prod(math.ceil(side / self.data.simulated.spacing) for side in TEMPLATE_MM)
        stride = max(len(self._masks) // HEADERS, 1)
        sizes = [size for path in self._masks[::stride] if (size := _voxels(path))]
        return sum(sizes) / len(sizes) if sizes else math.prod(self.data.shape)


def data_sets(config: Config) -> dict[str, DataSet]:
    """Every data set of a study by name."""
    return {name: DataSet(data) for name, data in config.data.items()}


def disk_bytes(job: Job, dataset: DataSet) -> float:
    """What a job leaves on disk at its peak; 0 for figures, tables and scores, which are small.

    Args:
        dataset: the one that the job belongs to.
    """
    data = dataset.data
    if job.rule == "data_simulate":
        image, mask = SIMULATED_BYTES
        return dataset.subjects * dataset.source_voxels * (image * len(data.modalities) + mask)
    if job.rule == "data_prepare":
        return dataset.subjects * math.prod(data.shape) * (4 * len(data.modalities) + len(data.labels))
    if job.rule == "train_model":
        spec = TrainJob.parse(job.spec)
        weights = 4 * parameters(spec.model)
        # Weights, average and Adam's two moments; a new checkpoint is whole before an old one goes.
        checkpoints = (KEEP + 1) * 4 * weights if spec.train.steps else 0
        return weights + checkpoints + LOSS_BYTES * spec.train.steps
    if job.rule == "sample_volumes":
        spec = SampleJob.parse(job.spec)
        volumes = dataset.splits.get(spec.sample.split, 0) * spec.sample.per_mask * len(spec.model.image)
        on_grid = math.prod(spec.model.shape)
        # Beyond the model's grid lies one value, which compresses to nothing.
        nifti = min(dataset.source_voxels, on_grid) if data.fit == "crop_pad" else dataset.source_voxels
        return volumes * (4 * on_grid + NIFTI_BYTES * nifti)
    return 0


@lru_cache(maxsize=64)
def parameters(spec: MedDDPMSpec) -> int:
    """Parameters of a network."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in UNet(spec).parameters())


def _voxels(path: Path) -> int | None:
    """Voxels by a file's header; None for a file that the stage `data` will refuse."""
    import nibabel as nib
    from nibabel.filebasedimages import ImageFileError

    try:
        return math.prod(nib.load(path).shape[:3])
    except (ImageFileError, OSError, ValueError, EOFError):
        return None
