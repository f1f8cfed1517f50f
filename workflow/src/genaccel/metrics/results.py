"""From per-volume scores and features to the results of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genaccel.measurement import Result
from genaccel.metrics.features import FeatureNetwork
from genaccel.metrics.fid import frechet_distance
from genaccel.metrics.image import DATA_RANGE, UNITS
from genaccel.metrics.spec import MetricsSpec

Case = dict[str, str | int | float]


class Scored(NamedTuple):
    """Scores of one synthetic volume in one modality, by (metric, region)."""

    subject: str
    sample: int
    modality: str
    scores: Mapping[tuple[str, str], float]


def image_results(scored: Sequence[Scored], settings: MetricsSpec, case: Case, seed: int) -> list[Result]:
    """One result a modality, region and metric, with a value a volume in the order of ``scored``.

    Where a volume's value is not finite, the result is ``unsupported`` and its reason names the volumes.
    """
    results = []
    for modality in dict.fromkeys(volume.modality for volume in scored):
        volumes = [volume for volume in scored if volume.modality == modality]
        for metric, region in volumes[0].scores:
            cell = case | {"modality": modality, "region": region} | _constants(metric, settings)
            values = [volume.scores[metric, region] for volume in volumes]
            reason = _why_not_finite(metric, region, volumes)
            outcome = {"status": "unsupported", "reason": reason} if reason else {"values": tuple(values)}
            results.append(Result(metric=metric, unit=UNITS[metric], case=cell, seed=seed, **outcome))
    return results


def fid_result(
    synthetic: Sequence[NDArray],
    real: Sequence[NDArray],
    network: FeatureNetwork,
    case: Case,
    reference: str,
    seed: int,
) -> Result:
    """FID of one modality; ``unsupported`` with fewer than two volumes a side.

    Its case says ``reliable=no`` where a set is smaller than the features' dimension.

    Args:
        synthetic, real: features of each volume, (d,).
        network: what they are features of.
        case: of the run and modality.
        reference: the split that ``real`` is.
    """
    cell = case | {
        "features": network.name,
        "network": network.sha256[:12],
        "dimension": network.dimension,
        "reference": reference,
        "n_reference": len(real),
    }
    common = {"metric": "fid", "unit": "1", "n": len(synthetic), "seed": seed}
    if min(len(synthetic), len(real)) < 2:
        reason = f"FID needs two volumes a side at least; there are {len(synthetic)} synthetic and {len(real)} real"
        return Result(case=cell, status="unsupported", reason=reason, **common)
    distance = frechet_distance(np.stack(synthetic), np.stack(real))
    cell["reliable"] = "yes" if distance.reliable else "no"
    return Result(case=cell, values=(distance.value,), **common)


def _constants(metric: str, settings: MetricsSpec) -> Case:
    if metric == "mse":
        return {}
    if metric == "psnr":
        return {"data_range": DATA_RANGE}
    return {"data_range": DATA_RANGE, "window": settings.ssim_window, "sigma": settings.ssim_sigma}


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
