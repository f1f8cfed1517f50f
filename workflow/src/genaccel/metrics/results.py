"""From per-volume scores to the results of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from genaccel.measurement import Result
from genaccel.metrics.diversity import Diversity
from genaccel.metrics.image import DATA_RANGE, UNITS
from genaccel.metrics.memorisation import nearest, thumbnail_shape
from genaccel.metrics.ms_ssim import scales_that_fit
from genaccel.metrics.reference import RealVolumes
from genaccel.metrics.samples import Case
from genaccel.metrics.scoring import Scored
from genaccel.metrics.spec import MetricsSpec


def volume_results(
    scored: Sequence[Scored], settings: MetricsSpec, shape: Sequence[int], case: Case, seed: int
) -> list[Result]:
    """One result a modality, region and metric, with a value a volume in the order of ``scored``.

    Where a volume's value is not finite, the result is ``unsupported`` and its reason names the volumes.

    Args:
        shape: (R, A, S) of the volumes.
    """
    results = []
    for modality in dict.fromkeys(volume.modality for volume in scored):
        volumes = [volume for volume in scored if volume.modality == modality]
        for metric, region in volumes[0].scores:
            cell = case | {"modality": modality} | ({"region": region} if region else {})
            cell |= _constants(metric, settings, shape)
            values = [volume.scores[metric, region] for volume in volumes]
            reason = _why_not_finite(metric, region, volumes)
            results.append(_result(metric, values, reason, cell, seed))
    return results


def dice_results(metric: str, dice: Mapping[str, Sequence[float]], case: Case, seed: int) -> list[Result]:
    """One result a mask channel, with a value an image; images whose mask has no voxel of it have none.

    Args:
        metric: ``dice`` of synthetic volumes, or ``dice_real``.
        dice: by channel; NaN where there is no voxel.
    """
    results = []
    for channel, values in dice.items():
        defined = [value for value in values if not math.isnan(value)]
        reason = "" if defined else f"no voxel of {channel} in any of the {len(values)} masks"
        results.append(_result(metric, defined, reason, case | {"channel": channel}, seed))
    return results


def nearest_real_results(real: RealVolumes, shape: Sequence[int], case: Case, seed: int) -> list[Result]:
    """How near real volumes are to the training split, with which ``nearest_train`` compares, one a modality.

    Those outside the split where there are any (``real=held_out``), else each of it to the nearest other one
    (``real=train``).
    """
    results = []
    trained = real.in_split("train")
    held_out = not trained.all()
    for modality, rows in real.thumbnails.items():
        cell = case | {"modality": modality} | _thumbnails(shape)
        cell["real"] = "held_out" if held_out else "train"
        if trained.sum() < (1 if held_out else 2):
            reason = f"the training split has {trained.sum()} volume(s): nothing to be near to"
            results.append(_result("nearest_train_real", (), reason, cell, seed))
            continue
        train = rows[trained]
        distances = nearest(rows[~trained], train) if held_out else nearest(train, train, exclude_self=True)
        results.append(_result("nearest_train_real", [float(d) for d in distances], "", cell, seed))
    return results


def diversity_results(
    found: Mapping[str, Diversity], settings: MetricsSpec, shape: Sequence[int], case: Case, seed: int
) -> list[Result]:
    """Two results a modality, with a value a pair: of the samples, and of the real volumes of their masks."""
    results = []
    for modality, pairs in found.items():
        cell = case | {"modality": modality, "region": "whole", "pairs": "between_masks"}
        cell |= _constants("ms_ssim", settings, shape)
        for metric, values in (("ms_ssim_diversity", pairs.synthetic), ("ms_ssim_diversity_real", pairs.real)):
            reason = "" if values else "diversity needs samples of two masks at least; there is one"
            results.append(_result(metric, values, reason, cell, seed))
    return results


def _result(metric: str, values: Sequence[float], reason: str, case: Case, seed: int) -> Result:
    outcome = {"status": "unsupported", "reason": reason} if reason else {"values": tuple(values)}
    return Result(metric=metric, unit=UNITS.get(metric, "1"), case=case, seed=seed, **outcome)


def _thumbnails(shape: Sequence[int]) -> Case:
    return {"distance": "rmse", "grid": "x".join(map(str, thumbnail_shape(shape)))}


def _constants(metric: str, settings: MetricsSpec, shape: Sequence[int]) -> Case:
    if metric == "mse":
        return {}
    if metric == "nearest_train":
        return _thumbnails(shape)
    if metric == "psnr":
        return {"data_range": DATA_RANGE}
    constants = {"data_range": DATA_RANGE, "window": settings.ssim_window, "sigma": settings.ssim_sigma}
    return constants | ({"scales": scales_that_fit(shape, settings.ssim_window)} if metric == "ms_ssim" else {})


def _why_not_finite(metric: str, region: str, volumes: Sequence[Scored]) -> str:
    infinite = [volume for volume in volumes if math.isinf(volume.scores[metric, region])]
    undefined = [volume for volume in volumes if math.isnan(volume.scores[metric, region])]
    if infinite:
        return f"infinite, since synthetic equals real: {_names(infinite)} of {len(volumes)} volumes"
    if undefined:
        where = " within the window's reach of the border" if metric == "ssim" else ""
        return f"no foreground voxel{where} in the mask: {_names(undefined)} of {len(volumes)} volumes"
    return ""


def _names(volumes: Sequence[Scored]) -> str:
    names = [f"{volume.subject}-{volume.sample}" for volume in volumes]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
