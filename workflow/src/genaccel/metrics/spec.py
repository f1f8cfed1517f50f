"""Settings of the `metrics` stage."""

from __future__ import annotations

from pydantic import field_validator

from genaccel.metrics.features import FEATURES
from genaccel.spec import Spec, setting


class MetricsSpec(Spec):
    """Scores of synthetic volumes against real ones."""

    ssim_window: int = setting(
        7, "side of SSIM's Gaussian window in voxels; odd, at most the volume's shortest side", example=5, ge=3
    )
    ssim_sigma: float = setting(1.5, "standard deviation of that window in voxels", example=1.0, gt=0)
    features: str = setting("deepbet", "feature network of FID-3D", example="deepbet")

    @field_validator("ssim_window")
    @classmethod
    def _odd(cls, window: int) -> int:
        if window % 2 == 0:
            raise ValueError(f"{window} is even; use an odd side such as {window + 1}")
        return window

    @field_validator("features")
    @classmethod
    def _known(cls, name: str) -> str:
        return FEATURES.check(name)


class MetricsJob(Spec):
    """What the rule `metrics` passes."""

    device: str
    model: str
    sampler: str
    metrics: MetricsSpec
