"""Composes the settings of all stages and hands each job exactly the part that it consumes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import field_validator, model_validator

from genaccel.atomic import file_sha256
from genaccel.data.samples import Sample, read_samples, read_table
from genaccel.data.spec import DataJob, DataSpec, SimulatedSpec, SimulateJob
from genaccel.data.split import split_subjects
from genaccel.figures.spec import FigureJob, FiguresSpec
from genaccel.med_ddpm.spec import MedDDPMSpec, NetworkSpec
from genaccel.metrics.spec import MetricsJob, MetricsSpec, RealJob, SegmenterJob
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.spec import SampleJob, SampleSpec
from genaccel.spec import Spec, SpecError, nearest, setting
from genaccel.train.spec import Conduct, TrainBlock, TrainJob, TrainSpec

Part = TypeVar("Part", TrainSpec, Conduct)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ModelSpec(NetworkSpec):
    """One network, the data set it learns from, and what it does differently from the blocks below."""

    data: str = setting("simulated", "data set of this model: a name under data", example=None)
    train: dict[str, Any] = setting({}, "settings of train that differ for this model", example={"steps": 20})
    sample: dict[str, Any] = setting({}, "settings of sample that differ for this model", example={"steps": [5]})


class Config(Spec):
    """One study."""

    study: str = setting("demo", "name of this study: its outputs lie in results/<study>/", example=None)
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto", "where networks run; auto takes an NVIDIA GPU where there is one", example="cpu"
    )
    data: dict[str, DataSpec] = setting({"simulated": DataSpec()}, "data sets by name", example=None, min_length=1)
    models: dict[str, ModelSpec] = setting({"med_ddpm": ModelSpec()}, "models by name", example=None, min_length=1)
    train: TrainBlock = setting(TrainBlock(), "stage train", example=None)
    sample: SampleSpec = setting(SampleSpec(), "stage sample", example=None)
    metrics: MetricsSpec = setting(MetricsSpec(), "stage metrics", example=None)
    figures: FiguresSpec = setting(FiguresSpec(), "stage figures", example=None)

    @field_validator("study")
    @classmethod
    def _name(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a folder; use letters, digits, `_`, `-` and `.`")
        return name

    @field_validator("study")
    @classmethod
    def _not_taken(cls, name: str) -> str:
        if name in ("reference", "figures"):
            raise ValueError(f"results/{name} belongs to the committed measurements; name the study otherwise")
        return name

    @field_validator("data", "models")
    @classmethod
    def _names(cls, entries: dict[str, Any]) -> dict[str, Any]:
        for name in entries:
            cls._name(name)
        return entries

    @model_validator(mode="after")
    def _resolves(self) -> Config:
        # Every job's settings are built once here, so that a fault in any shows before a job starts.
        for name in self.models:
            medddpm(self, name)
            train = stage_settings(self, name, "train")
            sample = stage_settings(self, name, "sample")
            timesteps = self.models[name].timesteps
            most = max(steps for _, steps in sample.runs(timesteps))
            if most > timesteps:
                raise ValueError(
                    f"sample.steps: {most} exceeds the {timesteps} steps of models.{name}.timesteps; "
                    f"use at most {timesteps}"
                )
            if train.steps == 0 and not train.weights:
                raise ValueError(
                    f"train.steps: 0 leaves models.{name} untrained; give train.weights, or train at least one step"
                )
        for name, data in self.data.items():
            if name not in {model.data for model in self.models.values()}:
                raise ValueError(
                    f"data.{name}: no model learns from it; set models.<name>.data to {name}, or take it out"
                )
            if self.metrics.ssim_window > min(data.shape):
                raise ValueError(
                    f"metrics.ssim_window: {self.metrics.ssim_window} exceeds the shortest side of data.{name}.shape "
                    f"{list(data.shape)}; use an odd window of at most {(min(data.shape) - 1) // 2 * 2 + 1}"
                )
        return self


def compose(raw: Mapping[str, Any]) -> Config:
    """Checks a whole config.

    Raises:
        SpecError: one line a fault, naming the key and the remedy.
    """
    return Config.build(dict(raw))


def stage_settings(config: Config, model: str, stage: Literal["train", "sample"]) -> Any:
    """A stage's settings for one model: the stage's block with the model's differences on top."""
    block: TrainBlock | SampleSpec = getattr(config, stage)
    differences = getattr(config.models[model], stage)
    return type(block).build(_merge(block.model_dump(mode="json"), differences), where=f"models.{model}.{stage}")


def medddpm(config: Config, model: str) -> MedDDPMSpec:
    """The network of a model, with grid and channels from its data set."""
    entry = config.models[model]
    if entry.data not in config.data:
        raise SpecError(f"models.{model}.data: no data set {entry.data!r}; {nearest(entry.data, config.data)}")
    data = config.data[entry.data]
    network = entry.model_dump(mode="json", include=set(NetworkSpec.model_fields))
    # Not as the file orders them: the order of keys must decide nothing.
    condition = network.pop("condition") or sorted(data.labels)
    if sorted(condition) != sorted(data.labels):
        raise SpecError(
            f"models.{model}.condition: {condition} is no order of the channels {sorted(data.labels)} of "
            f"data.{entry.data}.labels; name each exactly once"
        )
    network |= {"shape": data.shape, "image": data.modalities, "condition": condition}
    return MedDDPMSpec.build(network, where=f"models.{model} with data.{entry.data}")


def simulate_job(config: Config, dataset: str) -> SimulateJob:
    return SimulateJob.of(config.data[dataset])


def data_job(config: Config, dataset: str) -> DataJob:
    """Settings of `data`. The sample table counts by content, so that touching it reruns nothing.

    Its files count by size, since Snakemake sees only those that are newer than what was made of them: one that
    was replaced with its old time stamp (``cp -p``, ``rsync -a``) would pass for the same.
    """
    data = config.data[dataset]
    content = None
    if data.samples is not None:
        table = Path(data.samples)
        if not table.is_file():
            raise SpecError(
                f"data.{dataset}.samples: there is no sample table {data.samples}; make one: for a folder in BraTS' "
                f"layout `python -m genaccel.data.brats FOLDER > {data.samples}`, else by hand (config/README.md)"
            )
        content = hashlib.sha256(
            table.read_bytes() + _sizes(read_samples(table, data.modalities, data.on_error))
        ).hexdigest()
    # How subjects are simulated is the rule's before this one.
    data = data.model_copy(update={"simulated": SimulatedSpec()})
    return DataJob(dataset=dataset, data=data, samples_sha256=content)


def needed_splits(config: Config, model: str) -> dict[str, str]:
    """The splits without which a model's jobs fail, each with the setting that asks for it."""
    train, sample = (stage_settings(config, model, stage) for stage in ("train", "sample"))
    needed = {config.metrics.reference or sample.split: "metrics.reference", sample.split: "sample.split"}
    if config.metrics.segmenter.steps:
        needed["train"] = "metrics.segmenter.steps (0 leaves mask adherence out)"
    if train.steps:
        needed["train"] = "train.steps"
    return needed


def splits_of_dataset(config: Config, dataset: str) -> list[str]:
    """The splits of a data set that any of its models needs."""
    models = [name for name, model in config.models.items() if model.data == dataset]
    return sorted({split for model in models for split in needed_splits(config, model)})


def check_splits(config: Config) -> None:
    """That every model has subjects to learn from and to sample, before anything runs.

    Raises:
        SpecError: a split that a model needs is empty.
    """
    for model, entry in config.models.items():
        data = config.data[entry.data]
        if data.samples is None:
            splits = split_subjects([f"sim-{i:04d}" for i in range(data.simulated.subjects)], data.split)
        else:
            table = read_table(Path(data.samples), data.modalities)
            splits = {name: split for name, split in table.splits(data.split).items() if name not in table.missing}
        filled = set(splits.values())
        for split, key in needed_splits(config, model).items():
            if split not in filled:
                raise SpecError(
                    f"data.{entry.data}.split: none of the {len(splits)} subjects is in the split `{split}`, which "
                    f"models.{model} needs; raise its share, fill the table's column `split`, or change {key}"
                )


def check_files(config: Config) -> None:
    """That the files which the config names are there, before anything runs.

    Of a missing input Snakemake concludes that what was made of it is up to date.

    Raises:
        SpecError: a file of weights is missing.
    """
    named = {"metrics.features.weights": config.metrics.features.weights}
    named |= {f"models.{m}: train.weights": stage_settings(config, m, "train").weights for m in config.models}
    for key, path in named.items():
        if path is not None and not Path(path).is_file():
            raise SpecError(f"{key}: there is no file {path}; correct the path, or leave it null")
    features = config.metrics.features
    if features.weights and not features.weights_sha256:
        raise SpecError(
            f"metrics.features.weights_sha256: not set; {features.weights} has {file_sha256(features.weights)}. Where "
            "you trust this file, set it to that, so that all see volumes through one network"
        )


def _sizes(samples: Sequence[Sample]) -> bytes:
    files = sorted(path for sample in samples for path in sample.files.values())
    return "\n".join(f"{path} {path.stat().st_size}" for path in files).encode()


def train_job(config: Config, model: str) -> TrainJob:
    train = _part(config, model, TrainSpec)
    content = _fingerprint(Path(train.weights)) if train.weights else None
    return TrainJob(device=config.device, model=medddpm(config, model), train=train, weights_fingerprint=content)


def _fingerprint(path: Path) -> str | None:
    """Of a file's size and three of its megabytes: tells a replaced file of weights, and even a large one at once."""
    if not path.is_file():
        return None
    size, part = path.stat().st_size, 2**20
    digest = hashlib.sha256(str(size).encode())
    with open(path, "rb") as file:
        for start in (0, size // 2, max(size - part, 0)):
            file.seek(start)
            digest.update(file.read(part))
    return digest.hexdigest()[:16]


def conduct_job(config: Config, model: str) -> Conduct:
    return _part(config, model, Conduct)


def _part(config: Config, model: str, part: type[Part]) -> Part:
    """One of the two halves of the block `train`, for one model."""
    block = stage_settings(config, model, "train")
    return part(**{name: getattr(block, name) for name in part.model_fields})


def sample_runs(config: Config, model: str) -> list[tuple[str, int]]:
    """Every (sampler, steps) that the config asks of a model."""
    return list(stage_settings(config, model, "sample").runs(config.models[model].timesteps))


def sample_job(config: Config, model: str, sampler: str, steps: int | str) -> SampleJob:
    # Which other samplers and numbers of steps run, and settings that only those take, are no business of this one.
    block = stage_settings(config, model, "sample")
    ignored = {name: SampleSpec.model_fields[name].default for name in {"eta", "order"} - SAMPLERS.options(sampler)}
    sample = block.model_copy(update={"samplers": (sampler,), "steps": None, **ignored})
    return SampleJob(
        device=config.device, model=medddpm(config, model), sampler=sampler, steps=int(steps), sample=sample
    )


def real_job(config: Config, dataset: str) -> RealJob:
    return RealJob(device=config.device, dataset=dataset, features=config.metrics.features)


def segmenter_job(config: Config, dataset: str) -> SegmenterJob:
    return SegmenterJob(device=config.device, dataset=dataset, segmenter=config.metrics.segmenter)


def metrics_job(config: Config, model: str, sampler: str, steps: int | str) -> MetricsJob:
    return MetricsJob(device=config.device, model=model, sampler=sampler, steps=int(steps), metrics=config.metrics)


def figure_job(config: Config, name: str) -> FigureJob:
    return FigureJob(title=name, figures=config.figures)


JOBS: dict[str, Callable[..., Spec]] = {
    "simulate": simulate_job,
    "data": data_job,
    "train": train_job,
    "conduct": conduct_job,
    "sample": sample_job,
    "real": real_job,
    "segmenter": segmenter_job,
    "metrics": metrics_job,
    "figure": figure_job,
}


def job(config: Config, kind: str, **names: str) -> Spec:
    """What a job consumes, e.g. ``job(config, "train", model="med_ddpm")``."""
    return JOBS[kind](config, **names)


def _merge(block: dict[str, Any], differences: Mapping[str, Any]) -> dict[str, Any]:
    """Nested dicts merge key by key; everything else is replaced."""
    merged = dict(block)
    for key, value in differences.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged
