"""Settings of the `metrics` stage."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from genaccel.metrics.features import FEATURES, needs_weights
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.spec import SampleRun
from genaccel.spec import Spec, setting


class FeatureSpec(Spec):
    """The network through which FID-3D, KID and MMD see volumes."""

    network: str = setting(
        "deepbet", "deepbet comes with its package; the others need `weights`", example="medicalnet_10"
    )
    weights: str | None = setting(
        None, "file of the network's weights, where it does not come with a package", example="resnet_10_23dataset.pth"
    )
    weights_sha256: str | None = setting(
        None, "SHA-256 that this file must have", example="0" * 64, pattern=r"^[0-9a-f]{64}$"
    )

    @field_validator("network")
    @classmethod
    def _known(cls, name: str) -> str:
        return FEATURES.check(name)

    @model_validator(mode="after")
    def _weights(self) -> FeatureSpec:
        if needs_weights(self.network) and not self.weights:
            raise ValueError(
                f"{self.network} does not come with a package; set `weights` to its file (MedicalNet's: "
                "https://github.com/Tencent/MedicalNet) and `weights_sha256` to that file's hash, or use deepbet"
            )
        if not needs_weights(self.network) and (self.weights or self.weights_sha256):
            raise ValueError(
                f"{self.network} comes with its package and reads no file; leave `weights` and `weights_sha256` null, "
                "or set `network` to the network of that file"
            )
        return self


class SegmenterSpec(Spec):
    """The network that finds the mask again in a volume; trained on the real volumes of the training split."""

    steps: int = setting(400, "optimizer steps; 0 leaves mask adherence out", example=10, ge=0)
    channels: int = setting(8, "channels of the first level", example=4, ge=1)
    learning_rate: float = setting(0.02, "Adam's highest step size", example=0.002, gt=0)
    batch: int = setting(2, "patches of volumes a step", example=4, ge=1)
    seed: int = setting(0, "seed of initial weights and data order", example=1, ge=0)


class MetricsSpec(Spec):
    """Scores of synthetic volumes against real ones."""

    ssim_window: int = setting(
        7, "side of SSIM's Gaussian window in voxels; odd, at most the volume's shortest side", example=5, ge=3
    )
    ssim_sigma: float = setting(1.5, "standard deviation of that window in voxels", example=1.0, ge=0.3)
    features: FeatureSpec = setting(
        FeatureSpec(),
        "feature network of FID-3D, KID and MMD",
        # As one, since its settings go together.
        example={"network": "medicalnet_10", "weights": "resnet_10_23dataset.pth", "weights_sha256": "0" * 64},
    )
    reference: Literal["train", "validation", "test"] | None = setting(
        None,
        "split of the real volumes that FID-3D, KID and MMD compare with; null: the split that was sampled",
        example="train",
    )
    segmenter: SegmenterSpec = setting(SegmenterSpec(), "network of mask adherence (Dice)", example=None)

    @field_validator("ssim_window")
    @classmethod
    def _odd(cls, window: int) -> int:
        if window % 2 == 0:
            raise ValueError(f"{window} is even; use an odd side such as {window + 1}")
        return window


class BaselineSpec(Spec):
    """A run to compare others of its model with; what it leaves out is as in the run that is compared."""

    variant: str | None = None
    sampler: str | None = None
    steps: Annotated[int, Field(ge=1)] | None = None

    def is_met_by(self, run: SampleRun, compared: SampleRun) -> bool:
        """Whether ``run`` is what another run is compared with."""
        return (
            run.variant == (self.variant or compared.variant)
            and run.sampler == (self.sampler or compared.sampler)
            and (run.steps == (self.steps or compared.steps) or self._steps_are_fixed(run))
        )

    def _steps_are_fixed(self, run: SampleRun) -> bool:
        return self.steps is None and "steps" not in SAMPLERS.options(run.sampler)

    @field_validator("sampler")
    @classmethod
    def _known(cls, sampler: str | None) -> str | None:
        return None if sampler is None else SAMPLERS.check(sampler)


class CompareSpec(Spec):
    """Which runs are compared volume by volume, and as sets; the scores of a run do not depend on it."""

    baselines: tuple[BaselineSpec, ...] = setting(
        (BaselineSpec(variant="fp32_strict"),),
        "runs that the others of a model are compared with: any of variant, sampler, steps; what is left out is as in "
        "the compared run. Where a baseline is not sampled there is no comparison",
        example=({"variant": "fp32_strict_benchmark"},),
    )


class MetricsBlock(CompareSpec, MetricsSpec):
    """The config's block `metrics`."""


class RealJob(Spec):
    """What the rule `metrics_real` passes."""

    device: str
    dataset: str
    features: FeatureSpec


class SegmenterJob(Spec):
    """What the rule `metrics_segmenter` passes."""

    device: str
    dataset: str
    segmenter: SegmenterSpec


class MetricsJob(Spec):
    """What the rule `metrics_score` passes."""

    device: str
    model: str
    sampler: str
    steps: int
    variant: str
    metrics: MetricsSpec


class RunName(Spec):
    """Which run of a model: how it was sampled."""

    sampler: str
    steps: int
    variant: str


class CompareJob(Spec):
    """What the rule `metrics_compare` passes."""

    device: str
    model: str
    run: RunName
    baseline: RunName
    ssim_window: int
    ssim_sigma: float
    reference: Literal["train", "validation", "test"] | None
