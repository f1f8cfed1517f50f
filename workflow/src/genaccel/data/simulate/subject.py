"""One simulated subject from its seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from genaccel.data.simulate.contrast import contrast_of, render
from genaccel.data.simulate.fields import smooth_field
from genaccel.data.simulate.template import Template
from genaccel.data.simulate.tumour import shells, tumour_rank
from genaccel.data.spec import SimulateJob

# Distance of the warp's control points in mm: wide against the displacements, so that nothing folds.
WARP_LATTICE = 50.0


def simulate_subject(
    job: SimulateJob, template: Template, index: int
) -> tuple[NDArray[np.int32], dict[str, NDArray[np.int16]]]:
    """Simulates subject number ``index``, which depends on nothing but ``job`` and that number.

    Returns:
        The label map and the images by modality, all on the template's grid.
    """
    seeds = np.random.SeedSequence((job.simulated.seed, index)).spawn(2 + len(job.modalities))
    anatomy, lesion, *scans = map(np.random.default_rng, seeds)
    maps = warp(anatomy, template, job.simulated.warp)
    brain = maps[0] > 0.5
    brain_label, tumour_labels = label_numbers(job)
    mask = np.where(brain, np.int32(brain_label), np.int32(0))
    rank = np.ones(brain.shape)
    if tumour_labels:
        rank = tumour_rank(lesion, brain, template.spacing, job.simulated.tumour_radius)
        mask = np.where(rank < 1, shells(rank, tumour_labels), mask)
    images = {
        modality: render(rng, contrast_of(modality), maps, brain, rank, template.spacing)
        for modality, rng in zip(job.modalities, scans, strict=True)
    }
    return mask, images


def warp(rng: np.random.Generator, template: Template, displacement: float) -> NDArray[np.float32]:
    """Bends the template's maps by a smooth random field.

    Args:
        displacement: root mean square of the displacements' length, in mm.

    Returns:
        (5, X, Y, Z), as ``Template.maps``.
    """
    field = np.stack([smooth_field(rng, template.shape, template.spacing, WARP_LATTICE) for _ in range(3)])
    where = np.indices(template.shape) + field * (displacement / np.sqrt(3) / template.spacing)
    maps = np.zeros_like(template.maps)
    maps[0] = ndimage.map_coordinates(template.maps[0], where, order=1)
    # Outside the brain nothing is painted: most of the work is saved.
    brain = maps[0] > 0
    for source, target in zip(template.maps[1:], maps[1:], strict=True):
        target[brain] = ndimage.map_coordinates(source, where[:, brain], order=1)
    return maps


def label_numbers(job: SimulateJob) -> tuple[int, tuple[int, ...]]:
    """The number of the brain (0: left to ``derive_brain``, or no channel) and those of the tumour's parts.

    They are numbers as a file holds them, before `remap`.
    """
    in_file = {new: old for old, new in job.remap.items()}

    def raw(label: int) -> int:
        return in_file[label] if label in job.remap and label in in_file else label

    others = {label for channel, members in job.labels.items() if channel != "brain" for label in members}
    own = [label for label in job.labels.get("brain", ()) if label not in others]
    brain = 0 if job.derive_brain or not own else raw(own[0])
    return brain, tuple(sorted(raw(label) for label in others))
