"""How far apart two runs' volumes of one mask, seed and noise are."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from genaccel.data.manifest import Manifest, load_subject
from genaccel.measurement import Result
from genaccel.metrics.image import DATA_RANGE, image_scores
from genaccel.metrics.samples import Case, SampleIndex, load_sample
from genaccel.metrics.spec import CompareJob
from genaccel.spec import SpecError

Values = dict[tuple[str, str, str], list[float]]
"""By (modality, metric, region), one a volume."""


def image_pairs(
    job: CompareJob,
    manifest_path: Path,
    manifest: Manifest,
    index: SampleIndex,
    folders: tuple[Path, Path],
    device: torch.device,
) -> Values:
    """SSIM and PSNR between the two volumes of every mask, whole and within the mask's foreground.

    Args:
        index: of either folder, which hold the same volumes.
        folders: of the run and of its baseline.
    """
    subjects = {subject.subject: subject for subject in manifest.in_split(index.split)}
    values: Values = {}
    for number, sample in enumerate(index.volumes, start=1):
        image, labels = load_subject(manifest_path, subjects[sample.subject])
        foreground = torch.from_numpy(labels).bool().any(dim=0).to(device)
        pair = [torch.from_numpy(load_sample(folder, sample, image.shape)).to(device) for folder in folders]
        for modality, x, y in zip(manifest.modalities, *pair, strict=True):
            scores = image_scores(x, y, foreground, job.ssim_window, job.ssim_sigma)
            for (metric, region), value in scores.items():
                if metric in ("ssim", "psnr"):
                    values.setdefault((modality, f"paired_{metric}", region), []).append(value)
        print(f"metrics: {sample.volume} compared, {number} of {len(index.volumes)}", flush=True)
    return values


def feature_pairs(run: NDArray[np.float64], baseline: NDArray[np.float64]) -> list[float]:
    """Euclidean distance between the features of the two volumes of every mask; (n, d) each."""
    return np.linalg.norm(run - baseline, axis=1).tolist()


def pair_results(values: Values, job: CompareJob, case: Case, seed: int) -> list[Result]:
    """One result a modality, metric and region with a value a volume, in the order of the index."""
    results = []
    for (modality, metric, region), found in values.items():
        cell = case | {"modality": modality, "region": region, "data_range": DATA_RANGE}
        if metric == "paired_ssim":
            cell |= {"window": job.ssim_window, "sigma": job.ssim_sigma}
        results.append(_result(metric, found, cell, seed))
    return results


def ssim_to_real(path: Path, modality: str) -> dict[tuple[str, int], float]:
    """Foreground SSIM to the real volume, by subject and sample, from what `genaccel.metrics` wrote of each volume.

    Raises:
        SpecError: the table has no such column.
    """
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "ssim_foreground" not in rows[0]:
        raise SpecError(f"{path} has no column ssim_foreground; score its samples again (python -m genaccel.metrics)")
    return {
        (row["subject"], int(row["sample"])): float(row["ssim_foreground"])
        for row in rows
        if row["modality"] == modality
    }


def ssim_changes(run: Path, baseline: Path, modality: str, index: SampleIndex) -> list[float]:
    """Change of the foreground SSIM to the real volume, run less baseline, one a volume of the index."""
    to_real, before = (ssim_to_real(path, modality) for path in (run, baseline))
    return [to_real[key] - before[key] for key in ((volume.subject, volume.sample) for volume in index.volumes)]


def ssim_change_result(changes: Sequence[float], case: Case, seed: int) -> Result:
    return _result("ssim_difference", changes, case | {"region": "foreground"}, seed)


def _result(metric: str, values: Sequence[float], case: Case, seed: int) -> Result:
    unit = "dB" if metric == "paired_psnr" else "1"
    equal, undefined = sum(map(math.isinf, values)), sum(map(math.isnan, values))
    reason = ""
    if equal:
        reason = f"infinite, since the two runs are equal in {equal} of {len(values)} volumes"
    elif undefined:
        reason = f"no foreground voxel within reach in {undefined} of {len(values)} masks"
    outcome = {"status": "unsupported", "reason": reason} if reason else {"values": tuple(values)}
    return Result(metric=metric, unit=unit, case=case, seed=seed, **outcome)
