"""Settings of the `data` stage: one entry a data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, model_validator

from genaccel.spec import Spec, setting

Label = Annotated[int, Field(ge=1)]
Labels = Annotated[tuple[Label, ...], Field(min_length=1)]
Channel = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Modality = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Side = Annotated[int, Field(ge=1)]
Millimetres = Annotated[float, Field(gt=0)]


class SimulatedSpec(Spec):
    """Simulated subjects: seeded warps of the MNI152 template with synthetic tumours."""

    subjects: int = setting(16, "how many to simulate", example=4, ge=1)
    spacing: float = setting(4.0, "voxel size in mm; the template has 1 mm", example=3.0, gt=0)
    warp: float = setting(6.0, "root-mean-square displacement of the smooth warp in mm", example=3.0, ge=0)
    tumour_radius: tuple[Millimetres, Millimetres] = setting(
        (10.0, 22.0), "range of the tumours' mean radius in mm", example=(8.0, 12.0)
    )
    seed: int = setting(0, "seed of warps, intensities and tumours", example=1, ge=0)

    @model_validator(mode="after")
    def _check(self) -> SimulatedSpec:
        low, high = self.tumour_radius
        if low > high:
            raise ValueError(f"tumour_radius: {list(self.tumour_radius)} falls; write the smaller radius first")
        return self


class SplitSpec(Spec):
    """How subjects are split; a `split` column in the sample table overrules it."""

    train: float = setting(0.75, "share of the subjects to train on", example=0.5, ge=0, le=1)
    validation: float = setting(0.0, "share kept aside for choosing settings", example=0.1, ge=0, le=1)
    test: float = setting(0.25, "share whose masks are sampled and scored", example=0.2, ge=0, le=1)
    seed: int = setting(0, "seed of the shuffle", example=1, ge=0)

    @model_validator(mode="after")
    def _check(self) -> SplitSpec:
        total = self.train + self.validation + self.test
        if abs(total - 1) > 1e-6:
            raise ValueError(f"train + validation + test = {total:g}; the shares must add up to 1")
        return self


class DataSpec(Spec):
    """One data set: where it comes from, its labels, and the grid it is prepared on."""

    samples: str | None = setting(
        None,
        "sample table (TSV: subject, mask, one column a modality, optional split); null: simulated subjects",
        example="config/samples.tsv",
    )
    simulated: SimulatedSpec = setting(SimulatedSpec(), "used where samples is null", example=None)
    modalities: tuple[Modality, ...] = setting(
        ("t1",), "image channels: columns of the sample table", example=("t2",), min_length=1
    )
    labels: dict[Channel, Labels] = setting(
        {"brain": (1,), "tumour": (2,)},
        "mask channel -> the labels that make it",
        example={"brain": [1, 2], "tumour": [2]},
        min_length=1,
    )
    remap: dict[Label, Annotated[int, Field(ge=0)]] = setting(
        {}, "labels to rename first; raw BraTS 2021: {4: 3}", example={4: 3}
    )
    ignore_labels: tuple[Label, ...] = setting((), "labels that belong to no channel on purpose", example=(9,))
    derive_brain: Literal["nonzero"] | None = setting(
        None,
        "nonzero: the brain channel's label is every voxel where any modality is non-zero and no tumour is, "
        "as raw BraTS files need; null: the mask has it",
        example="nonzero",
    )
    shape: tuple[Side, Side, Side] = setting(
        (20, 20, 20), "voxels of the prepared grid along R, A, S", example=(48, 48, 32)
    )
    fit: Literal["resample", "crop_pad"] = setting(
        "resample", "how a volume gets onto the grid; crop_pad keeps its voxels as they are", example="crop_pad"
    )
    spacing: float | None = setting(
        None, "voxel size in mm for `resample`; null: the finest at which the whole volume fits", example=2.0, gt=0
    )
    percentiles: tuple[float, float] = setting(
        (0.5, 99.5), "percentiles over a whole volume (never slice by slice) that map to -1 and 1", example=(1.0, 99.0)
    )
    on_error: Literal["stop", "skip"] = setting(
        "stop",
        "at a subject whose files cannot be used: stop, or skip it, go on with the others and report it; "
        "a fault of the sample table always stops",
        example="skip",
    )
    split: SplitSpec = setting(
        SplitSpec(), "shares of the subjects, seeded", example={"train": 0.5, "test": 0.5, "seed": 1}
    )

    @model_validator(mode="after")
    def _check(self) -> DataSpec:
        low, high = self.percentiles
        if not 0 <= low < high <= 100:
            raise ValueError(f"percentiles: {list(self.percentiles)} are not two rising numbers within 0..100")
        if self.spacing and self.fit == "crop_pad":
            raise ValueError("spacing: crop_pad keeps the voxels as they are; set spacing: null, or fit: resample")
        reserved = sorted({"subject", "mask", "split"} & set(self.modalities))
        if reserved or len(set(self.modalities)) < len(self.modalities):
            raise ValueError(
                f"modalities: {list(self.modalities)} must be different columns of the sample table, "
                "none of them subject, mask or split"
            )
        if self.derive_brain and "brain" not in self.labels:
            raise ValueError("derive_brain needs a channel `brain` in labels, whose first label it fills")
        twice = [label for label in self.ignore_labels if any(label in members for members in self.labels.values())]
        if twice:
            raise ValueError(f"ignore_labels: {twice} also make a channel of labels; drop them from one of the two")
        for channel, label in self._emptied():
            raise ValueError(
                f"labels: remap renames {label} to {self.remap[label]}, so no voxel of channel `{channel}` can hold "
                f"{label}; name {self.remap[label]} there, or drop {label} from one of the two"
            )
        return self

    def _emptied(self) -> Iterator[tuple[str, int]]:
        """Labels of a channel that `remap` takes away and nothing gives back."""
        for channel, labels in self.labels.items():
            for label in labels:
                derived = self.derive_brain and label == self.labels["brain"][0]
                if label in self.remap and label not in self.remap.values() and not derived:
                    yield channel, label


class SimulateJob(Spec):
    """What the rule `data_simulate` passes: the keys of a data set that decide its simulated files."""

    simulated: SimulatedSpec
    modalities: tuple[Modality, ...]
    labels: dict[str, Labels]
    remap: dict[int, int]
    derive_brain: Literal["nonzero"] | None

    @classmethod
    def of(cls, data: DataSpec) -> SimulateJob:
        """The simulation's share of a data set's settings."""
        return cls(**{name: getattr(data, name) for name in cls.model_fields})


class DataJob(Spec):
    """What the rule `data` passes: the settings and, for files, the sample table's content hash."""

    dataset: str
    data: DataSpec
    samples_sha256: str | None = None
