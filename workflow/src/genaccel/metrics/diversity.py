"""How much samples of different masks differ from each other: MS-SSIM between them, and between their real volumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import torch

from genaccel.data.manifest import Manifest, load_subject
from genaccel.metrics.ms_ssim import ms_ssim, scales_that_fit
from genaccel.metrics.samples import SampleIndex, by_subject, load_sample
from genaccel.metrics.spec import MetricsSpec

MOST = 10
"""Subjects whose volumes are compared, at most: pairs grow with the square, and MS-SSIM in 3D is slow."""


class Diversity(NamedTuple):
    """MS-SSIM of all pairs of a modality's volumes, in the order of ``itertools.combinations``; empty of one volume."""

    synthetic: tuple[float, ...]
    real: tuple[float, ...]


def diversity(
    manifest_path: Path,
    manifest: Manifest,
    folder: Path,
    index: SampleIndex,
    settings: MetricsSpec,
    device: torch.device,
) -> dict[str, Diversity]:
    """Between the first samples of up to ten masks, evenly spaced in the order of names, by modality."""
    samples = by_subject(index, manifest)
    subjects = manifest.in_split(index.split)
    step = -(-len(subjects) // MOST)
    synthetic, real = [], []
    for subject in subjects[::step]:
        image, _ = load_subject(manifest_path, subject)
        real.append(torch.from_numpy(image).to(device))
        synthetic.append(torch.from_numpy(load_sample(folder, samples[subject.subject][0], image.shape)).to(device))
    window, sigma = settings.ssim_window, settings.ssim_sigma
    scales = scales_that_fit(manifest.shape, window)

    def similarity(x: torch.Tensor, y: torch.Tensor) -> float:
        return ms_ssim(x, y, window, sigma, scales)

    return {
        name: Diversity(*(of_pairs([image[channel] for image in images], similarity) for images in (synthetic, real)))
        for channel, name in enumerate(manifest.modalities)
    }


def of_pairs(
    volumes: Sequence[torch.Tensor], similarity: Callable[[torch.Tensor, torch.Tensor], float]
) -> tuple[float, ...]:
    """One value a pair."""
    return tuple(similarity(x, y) for x, y in combinations(volumes, 2))
