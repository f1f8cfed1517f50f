"""Looks at every synthetic volume once: its scores against the real one of its mask, and its features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genaccel.data.manifest import Manifest, load_subject
from genaccel.metrics.adherence import dice
from genaccel.metrics.features import FeatureNetwork, volume_features
from genaccel.metrics.image import image_scores
from genaccel.metrics.memorisation import nearest, thumbnail
from genaccel.metrics.ms_ssim import ms_ssim, scales_that_fit
from genaccel.metrics.reference import RealVolumes
from genaccel.metrics.samples import SampleIndex, by_subject, check_finite, load_sample
from genaccel.metrics.segmenter.network import Segmenter
from genaccel.metrics.spec import MetricsSpec

Scores = Mapping[tuple[str, str], float]
"""By metric and where: a region, a mask channel, or nothing."""


class Scored(NamedTuple):
    """Scores of one synthetic volume in one modality."""

    subject: str
    sample: int
    modality: str
    scores: Scores


@dataclass
class Scoring:
    """What there is to know of all synthetic volumes.

    Attributes:
        volumes: in the order of subject, sample and modality.
        dice: by mask channel, one value an image in the order of subject and sample; empty without a segmenter.
        dice_real: the same of the real images of the split.
        subjects: of each image.
        features: by modality, (n, d) float64, in the order of the images.
    """

    volumes: list[Scored] = field(default_factory=list)
    dice: dict[str, list[float]] = field(default_factory=dict)
    dice_real: dict[str, list[float]] = field(default_factory=dict)
    subjects: list[str] = field(default_factory=list)
    features: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class Scorer:
    """Scores the samples of a folder.

    Args:
        settings: of the stage.
        network: of the features.
        segmenter: None leaves mask adherence out.
        real: real volumes to compare thumbnails with.
        device: where to compute.
    """

    def __init__(
        self,
        settings: MetricsSpec,
        network: FeatureNetwork,
        segmenter: Segmenter | None,
        real: RealVolumes,
        device: torch.device,
    ) -> None:
        self._settings, self._network, self._segmenter, self._device = settings, network, segmenter, device
        trained = real.in_split("train")
        self._train = {name: rows[trained] for name, rows in real.thumbnails.items()}

    def __call__(self, manifest_path: Path, manifest: Manifest, folder: Path, index: SampleIndex) -> Scoring:
        """Raises SpecError where volumes and manifest do not belong together, or values are not finite."""
        samples, found = by_subject(index, manifest), Scoring()
        features: dict[str, list] = {name: [] for name in manifest.modalities}
        for number, subject in enumerate(manifest.in_split(index.split), start=1):
            image, labels = load_subject(manifest_path, subject)
            check_finite(image, f"{subject.subject}: {subject.volume}")
            real, mask = torch.from_numpy(image).to(self._device), torch.from_numpy(labels).bool().to(self._device)
            self._adhere(found.dice_real, manifest.channels, real, mask)
            for sample in samples[subject.subject]:
                synthetic = torch.from_numpy(load_sample(folder, sample, image.shape)).to(self._device)
                self._adhere(found.dice, manifest.channels, synthetic, mask)
                found.subjects.append(subject.subject)
                for name, x, y in zip(manifest.modalities, synthetic, real, strict=True):
                    features[name].append(volume_features(self._network, x, sample.volume))
                    scores = self._scores(name, x, y, mask.any(dim=0))
                    found.volumes.append(Scored(subject.subject, sample.sample, name, scores))
            print(f"metrics: {subject.subject} scored, {number} of {len(samples)} subjects", flush=True)
        found.features = {name: np.stack(rows) for name, rows in features.items()}
        return found

    def _scores(self, modality: str, x: Tensor, y: Tensor, foreground: Tensor) -> Scores:
        window, sigma = self._settings.ssim_window, self._settings.ssim_sigma
        scores = dict(image_scores(x, y, foreground, window, sigma))
        scores["ms_ssim", "whole"] = ms_ssim(x, y, window, sigma, scales_that_fit(x.shape, window))
        if len(self._train[modality]):
            scores["nearest_train", ""] = float(nearest(thumbnail(x)[None], self._train[modality])[0])
        return scores

    def _adhere(self, found: dict[str, list[float]], channels: Sequence[str], image: Tensor, mask: Tensor) -> None:
        if self._segmenter is None:
            return
        for channel, predicted, target in zip(channels, self._segmenter(image), mask, strict=True):
            found.setdefault(channel, []).append(dice(predicted, target))
