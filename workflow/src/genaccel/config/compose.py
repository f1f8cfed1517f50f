"""Composes the settings of all stages and hands each job exactly the part that it consumes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import field_validator, model_validator

from genaccel.atomic import file_sha256
from genaccel.config.devices import Kind, MeasuredDevice
from genaccel.data.samples import Sample, read_samples, read_table
from genaccel.data.spec import DataJob, DataSpec, SimulatedSpec, SimulateJob
from genaccel.data.split import split_subjects
from genaccel.figures.spec import FigureJob, FiguresSpec
from genaccel.med_ddpm.spec import MedDDPMSpec, NetworkSpec
from genaccel.metrics.spec import (
    CompareJob,
    MetricsBlock,
    MetricsJob,
    MetricsSpec,
    RealJob,
    RunName,
    SegmenterJob,
)
from genaccel.optimize.spec import OptimizeJob, OptimizeSpec, TimingSpec
from genaccel.profile.spec import ProfileJob, ProfileSpec
from genaccel.sample.samplers import SAMPLERS
from genaccel.sample.spec import SampleJob, SampleRun, SampleSpec
from genaccel.spec import Spec, SpecError, nearest, setting
from genaccel.train.spec import Conduct, CurvesJob, TrainBlock, TrainJob, TrainSpec, check_trainable
from genaccel.variant import STRICT, Variant
from genaccel.variants import BASELINES, VARIANTS, define, plainer, variant

Part = TypeVar("Part", TrainSpec, Conduct)
CURVES_BASELINE = "fp32_strict"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class ModelSpec(NetworkSpec):
    """One network, the data set it learns from, and what it does differently from the blocks below."""

    data: str = setting("simulated", "data set of this model: a name under data", example=None)
    train: dict[str, Any] = setting({}, "settings of train that differ for this model", example={"steps": 20})
    sample: dict[str, Any] = setting({}, "settings of sample that differ for this model", example={"steps": [5]})


class Config(Spec):
    """One study."""

    study: str = setting("demo", "name of this study: its outputs lie in results/<study>/", example=None)
    device: Kind = setting(
        "auto", "where networks run; auto takes an NVIDIA GPU or an Intel Gaudi where there is one", example="cpu"
    )
    devices: tuple[MeasuredDevice, ...] = setting(
        (),
        "devices that optimize and profile measure, each once: names such as h100, gaudi2 or cpu, or {name: h100, "
        "kind: cuda, gpu_model: h100}; []: the one of device",
        example=("cpu",),
    )
    merge: tuple[str, ...] = setting(
        (),
        "folders of run JSONs of other machines, such as results/reference/nvidia-h200/runs, whose rows stand in the "
        "tables of optimize and profile as well",
        example=None,
    )
    data: dict[str, DataSpec] = setting({"simulated": DataSpec()}, "data sets by name", example=None, min_length=1)
    models: dict[str, ModelSpec] = setting({"med_ddpm": ModelSpec()}, "models by name", example=None, min_length=1)
    variants: dict[str, dict[str, Any]] = setting(
        {},
        "this study's own variants: like: a variant that ships, and the switches that differ, e.g. "
        "{mine: {like: fast, cuda_graphs: false}}",
        example={"mine": {"like": "fp32_strict", "cudnn_benchmark": True}},
    )
    train: TrainBlock = setting(TrainBlock(), "stage train", example=None)
    sample: SampleSpec = setting(SampleSpec(), "stage sample", example=None)
    metrics: MetricsBlock = setting(MetricsBlock(), "stage metrics", example=None)
    optimize: OptimizeSpec = setting(OptimizeSpec(), "stage optimize", example=None)
    profile: ProfileSpec = setting(ProfileSpec(), "stage profile", example=None)
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

    @field_validator("devices")
    @classmethod
    def _different(cls, devices: tuple[MeasuredDevice, ...]) -> tuple[MeasuredDevice, ...]:
        names = [device.name for device in devices]
        if len(set(names)) < len(names):
            raise ValueError(f"{names} names a device twice; leave one out")
        return devices

    @field_validator("data", "models", "variants")
    @classmethod
    def _names(cls, entries: dict[str, Any]) -> dict[str, Any]:
        for name in entries:
            cls._name(name)
        return entries

    @model_validator(mode="after")
    def _resolves(self) -> Config:
        define(self.variants)
        # Every job's settings are built once here, so that a fault in any shows before a job starts.
        for name in self.models:
            train = stage_settings(self, name, "train")
            sample = stage_settings(self, name, "sample")
            switches = variant_of(self, train.variant, f"models.{name}: train.variant")
            check_trainable(train, medddpm(self, name), switches)
            timesteps = self.models[name].timesteps
            runs = list(sample.runs(timesteps))
            for run in runs:
                variant_of(self, run.variant, f"models.{name}: sample.variants")
            most = max(run.steps for run in runs)
            if most > timesteps:
                raise ValueError(
                    f"sample.steps: {most} exceeds the {timesteps} steps of models.{name}.timesteps; "
                    f"use at most {timesteps}"
                )
            if train.steps == 0 and not train.weights:
                raise ValueError(
                    f"train.steps: 0 leaves models.{name} untrained; give train.weights, or train at least one step"
                )
            for measured in (selected := optimize_variants(self)):
                variant_of(self, measured, "optimize.variants")
            if selected:
                self.optimize.check(medddpm(self, name), name, selected)
            for profiled in self.profile.variants:
                profile_job(self, measured_devices(self)[0].name, name, profiled)
        for number, baseline in enumerate(self.metrics.baselines):
            if baseline.variant is not None:
                variant_of(self, baseline.variant, f"metrics.baselines.{number}.variant")
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


def variant_of(config: Config, name: str, where: str) -> Variant:
    """What a variant's name stands for in this study.

    Raises:
        SpecError: there is none of this name; ``where`` is the key that holds it.
    """
    try:
        return variant(name, define(config.variants))
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None


def variant_names(config: Config) -> list[str]:
    """All variants that a study can name."""
    return sorted({*VARIANTS, *config.variants})


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
    for folder in config.merge:
        if not Path(folder).is_dir():
            raise SpecError(f"merge: there is no folder {folder}; correct the path, or take it out")
        if Path("results", config.study).resolve() in (path := Path(folder).resolve(), *path.parents):
            raise SpecError(f"merge: {folder} is where this study's own runs go; put other machines' elsewhere")
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
    return TrainJob(
        device=config.device,
        model=medddpm(config, model),
        train=train,
        switches=variant_of(config, train.variant, "train.variant"),
        weights_fingerprint=content,
    )


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


def curves(config: Config) -> dict[str, list[str]]:
    """Models whose trainings differ in seed and variant alone, by variant, the baseline's first.

    Empty where there are no two variants, of which fp32_strict is one, of the same two seeds or more.
    """
    alike: dict[str, dict[str, dict[int, str]]] = {}
    for model in config.models:
        job = train_job(config, model)
        work = job.model_copy(update={"train": job.train.model_copy(update={"seed": 0, "variant": ""})})
        by_variant = alike.setdefault(work.model_copy(update={"switches": STRICT}).canonical(), {})
        by_variant.setdefault(job.train.variant, {})[job.train.seed] = model
    for by_variant in alike.values():
        seeds = by_variant.get(CURVES_BASELINE, {}).keys()
        same = {name: [of[seed] for seed in sorted(of)] for name, of in by_variant.items() if of.keys() == seeds}
        if len(seeds) >= 2 and len(same) >= 2:
            return dict(sorted(same.items(), key=lambda item: (item[0] != CURVES_BASELINE, item[0])))
    return {}


def curves_job(config: Config, variant: str) -> CurvesJob:
    return CurvesJob(study=config.study, variant=variant, baseline=CURVES_BASELINE)


def sample_runs(config: Config, model: str) -> list[SampleRun]:
    """Every (sampler, steps, variant) that the config asks of a model."""
    return list(stage_settings(config, model, "sample").runs(config.models[model].timesteps))


def sample_job(config: Config, model: str, sampler: str, steps: int | str, variant: str) -> SampleJob:
    # Which other runs there are, and settings that only those take, are no business of this one.
    block = stage_settings(config, model, "sample")
    ignored = {name: SampleSpec.model_fields[name].default for name in {"eta", "order"} - SAMPLERS.options(sampler)}
    this = {"samplers": (sampler,), "steps": None, "variants": (variant,), "variants_of": {}}
    return SampleJob(
        device=config.device,
        model=medddpm(config, model),
        sampler=sampler,
        steps=int(steps),
        variant=variant,
        switches=variant_of(config, variant, "sample.variants"),
        sample=block.model_copy(update=this | ignored),
    )


def real_job(config: Config, dataset: str) -> RealJob:
    return RealJob(device=config.device, dataset=dataset, features=config.metrics.features)


def segmenter_job(config: Config, dataset: str) -> SegmenterJob:
    return SegmenterJob(device=config.device, dataset=dataset, segmenter=config.metrics.segmenter)


def metrics_job(config: Config, model: str, sampler: str, steps: int | str, variant: str) -> MetricsJob:
    # Which other runs it is compared with later is no business of a run's scores.
    metrics = MetricsSpec(**{name: getattr(config.metrics, name) for name in MetricsSpec.model_fields})
    return MetricsJob(
        device=config.device, model=model, sampler=sampler, steps=int(steps), variant=variant, metrics=metrics
    )


def comparisons(config: Config, model: str) -> list[tuple[SampleRun, SampleRun]]:
    """Every run of a model with each baseline that is sampled and is another run."""
    runs = sample_runs(config, model)
    pairs = {
        (run, baseline): None
        for run in runs
        for wanted in config.metrics.baselines
        for baseline in runs
        if baseline != run and wanted.is_met_by(baseline, run)
    }
    return list(pairs)


def compare_job(
    config: Config,
    model: str,
    sampler: str,
    steps: int | str,
    variant: str,
    base_sampler: str,
    base_steps: int | str,
    base_variant: str,
) -> CompareJob:
    return CompareJob(
        device=config.device,
        model=model,
        run=RunName(sampler=sampler, steps=int(steps), variant=variant),
        baseline=RunName(sampler=base_sampler, steps=int(base_steps), variant=base_variant),
        ssim_window=config.metrics.ssim_window,
        ssim_sigma=config.metrics.ssim_sigma,
        reference=config.metrics.reference,
    )


def measured_devices(config: Config) -> list[MeasuredDevice]:
    """The devices to measure: those of ``devices``, else the one of ``device``, whatever model that is."""
    return list(config.devices) or [MeasuredDevice(name=config.device, kind=config.device)]


def measured_device(config: Config, name: str) -> MeasuredDevice:
    """A device to measure, by name.

    Raises:
        SpecError: the study measures none of this name.
    """
    devices = {device.name: device for device in measured_devices(config)}
    if name not in devices:
        raise SpecError(f"devices: this study measures no {name!r}; {nearest(name, devices)}")
    return devices[name]


def optimize_variants(config: Config) -> list[str]:
    """Names of the variants to measure: those asked for, and the baselines; none where the stage is off."""
    asked = config.optimize.variants
    return [*BASELINES, *(name for name in asked if name not in BASELINES)] if asked else []


def optimize_job(config: Config, device: str, model: str, variant: str) -> OptimizeJob:
    # Which other variants are measured is no business of this one.
    settings, network = config.optimize, medddpm(config, model)
    switches = variant_of(config, variant, "optimize.variants")
    return OptimizeJob(
        device=measured_device(config, device).kind,
        name=model,
        model=network,
        variant=variant,
        switches=switches,
        plainer=plainer(variant, switches),
        shapes=settings.shapes(network.shape),
        batches=settings.batches,
        volumes=settings.volumes_of(variant, network.timesteps),
        seed=settings.seed,
        timing=TimingSpec(**{name: getattr(settings, name) for name in TimingSpec.model_fields}),
    )


def profile_job(config: Config, device: str, model: str, variant: str) -> ProfileJob:
    # Which other variants are profiled is no business of this one.
    return ProfileJob.build(
        {
            "device": measured_device(config, device).kind,
            "name": model,
            "model": medddpm(config, model).model_dump(mode="json"),
            "variant": variant,
            "switches": variant_of(config, variant, "profile.variants").model_dump(mode="json"),
            "profile": config.profile.model_dump(mode="json") | {"variants": []},
        }
    )


def figure_job(config: Config, name: str) -> FigureJob:
    return FigureJob(title=name, figures=config.figures)


JOBS: dict[str, Callable[..., Spec]] = {
    "simulate": simulate_job,
    "data": data_job,
    "train": train_job,
    "conduct": conduct_job,
    "curves": curves_job,
    "sample": sample_job,
    "real": real_job,
    "segmenter": segmenter_job,
    "metrics": metrics_job,
    "compare": compare_job,
    "optimize": optimize_job,
    "profile": profile_job,
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
