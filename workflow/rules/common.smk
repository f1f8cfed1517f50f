import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(workflow.basedir) / "workflow" / "src"
sys.path.insert(0, str(SOURCE))

from snakemake.exceptions import WorkflowError

from genaccel.code import CodeError
from genaccel.code import code as code_hash
from genaccel.config.compose import (
    check_files,
    check_splits,
    comparisons,
    compose,
    curves,
    job,
    measured_device,
    measured_devices,
    optimize_variants,
    sample_runs,
    splits_of_dataset,
    stage_settings,
    variant_names,
    variant_of,
)
from genaccel.config.reading import read_yaml
from genaccel.data.samples import read_samples
from genaccel.ownership import LOCAL_GPU, OWNERSHIP
from genaccel.sample.samplers import SAMPLERS
from genaccel.why import record_code


@contextmanager
def config_errors():
    """Shows a fault in the config, a sample table or an import as one message."""
    try:
        yield
    except (ValueError, CodeError) as error:
        raise WorkflowError(f"This study cannot run:\n{error}") from None


def reference_devices():
    """Devices with committed measurements. A dry run would not notice a missing table, so it is noticed here."""
    devices = sorted(path.name for path in Path("results/reference").glob("*") if path.is_dir())
    for device in devices:
        for table in ("metrics.csv", "loss.csv"):
            if not Path("results/reference", device, table).is_file():
                raise WorkflowError(f"results/reference/{device} has no {table}; `git checkout` brings it back")
    return devices


def with_table(name):
    """Devices whose committed measurements hold a table that not every device has."""
    return [device for device in REFERENCES if Path("results/reference", device, f"{name}.csv").is_file()]


with config_errors():
    for path in workflow.overwrite_configfiles or ["config/config.yaml"]:
        # Snakemake's own reader takes the last of two equal keys without a word.
        read_yaml(path)
    # Not the study's: a profile says it, and it changes nothing that is made.
    SITE = config.pop("site", None)
    CONFIG = compose(config)

RESULTS = f"results/{CONFIG.study}"
LOGS = f"logs/{CONFIG.study}"
DATASETS = sorted({model.data for model in CONFIG.models.values()})
MODELS = sorted(CONFIG.models)
REFERENCES = reference_devices()
CURVES = curves(CONFIG)
DEVICES = [device.name for device in measured_devices(CONFIG)]
ENVIRONMENT = "../../envs/cpu.yaml"

# Jobs run this checkout's library whatever is installed, with the Python that runs Snakemake. Under
# `--sdm conda` the environment's own Python stands first in PATH, and must stay there.
shell.prefix(
    # Snakemake's own strictness, which setting a prefix replaces: without it a job has the exit status of `tee`.
    "set -euo pipefail; "
    + ("" if SITE is None else f"export {OWNERSHIP}={'own' if SITE == LOCAL_GPU else 'assigned'}; ")
    + f"export PYTHONPATH={str(SOURCE)!r}${{{{PYTHONPATH:+:$PYTHONPATH}}}}; "
    + (
        ""
        if workflow.deployment_settings.deployment_method
        else f'export PATH={os.path.dirname(sys.executable)!r}:"$PATH"; '
    )
)


wildcard_constraints:
    dataset="|".join(map(re.escape, DATASETS)),
    model="|".join(map(re.escape, MODELS)),
    sampler="|".join(map(re.escape, SAMPLERS.names())),
    steps="[0-9]+",
    variant="|".join(map(re.escape, variant_names(CONFIG))),
    base_sampler="|".join(map(re.escape, SAMPLERS.names())),
    base_steps="[0-9]+",
    base_variant="|".join(map(re.escape, variant_names(CONFIG))),
    device="[a-z0-9-]+",


def spec(stage, **names):
    """The settings that a job of this stage consumes, as one canonical text; names may hold wildcards."""

    def resolve(wildcards):
        given = {key: text.format(**wildcards) for key, text in names.items()} or dict(wildcards.items())
        with config_errors():
            return job(CONFIG, stage, **given).canonical()

    return resolve


def code(*entries):
    """The hash of all library code behind a job; an entry may be a function of the wildcards, giving one or several."""
    with config_errors():
        code_hash(*(entry for entry in entries if not callable(entry)), root=SOURCE)

    def resolve(wildcards):
        given = [entry(wildcards) if callable(entry) else entry for entry in entries]
        modules = tuple(module for one in given for module in ([one] if isinstance(one, str) else one))
        with config_errors():
            value = code_hash(*modules, root=SOURCE)
        if not workflow.dryrun:
            record_code(value, modules, root=SOURCE)
        return value

    return resolve


def data_source(dataset):
    """The input of a data set's preparation: the files of its sample table, or the simulated subjects."""
    data = CONFIG.data[dataset]
    if data.samples is None:
        return {"simulated": f"{RESULTS}/data/{dataset}/simulated"}
    job(CONFIG, "data", dataset=dataset)  # says what to do where there is no table
    samples = read_samples(Path(data.samples), data.modalities, data.on_error)
    return {"files": [str(path) for s in samples for path in s.files.values()]}


def of_dataset(output, model):
    """An output of the data set that a model learns from."""
    return output.format(dataset=CONFIG.models[model].data)


def manifest_of(model):
    return of_dataset(rules.data_prepare.output.manifest, model)


def volumes_of(model):
    return of_dataset(rules.data_prepare.output.volumes, model)


def gpus(stage, model=None, device=None):
    """GPUs that a job needs: none where the config says `device: cpu`, or the device to measure is one."""
    if (measured_device(CONFIG, device).kind if device else CONFIG.device) == "cpu":
        return 0
    return stage_settings(CONFIG, model, "train").processes if stage == "train" else 1


def each_sample(pattern):
    """A path for every model with every sampler, number of steps and variant that the config asks of it."""
    return [pattern.format(model=model, **run._asdict()) for model in MODELS for run in sample_runs(CONFIG, model)]


def each_comparison(pattern):
    """A path for every run of a model with each of its baselines."""
    return [
        pattern.format(model=model, **run._asdict(), **{f"base_{key}": value for key, value in base._asdict().items()})
        for model in MODELS
        for run, base in comparisons(CONFIG, model)
    ]


def gpu_model(device):
    """What a profile sends a measuring job by; empty where any device will do."""
    return measured_device(CONFIG, device).gpu_model or ""


def each_measured(pattern):
    """A path for every device and model with every variant to measure."""
    return expand(pattern, device=DEVICES, model=MODELS, variant=optimize_variants(CONFIG))


def each_profile(pattern):
    """A path for every device and model with every variant to profile."""
    return expand(pattern, device=DEVICES, model=MODELS, variant=CONFIG.profile.variants)


def other_runs():
    """Run JSONs of other machines. No rule writes to these folders, so that what is there now is all there will be."""
    return sorted(str(path) for folder in CONFIG.merge for path in Path(folder).rglob("*.json"))


def volume_samplers(device, model, variant):
    """The modules of the samplers whose whole volumes are timed with a variant."""
    measured = job(CONFIG, "optimize", device=device, model=model, variant=variant)
    return [SAMPLERS.module(volume.sampler) for volume in measured.volumes]


def variant_module(name):
    """The module of a variant's kernels, which the code hash of its jobs covers."""
    return variant_of(CONFIG, name, "variant").module


def curve_files(output, variant):
    """An output of each training of a variant; of the baseline's none stand beside its own."""
    return expand(output, model=CURVES[variant])


def baseline_files(output, variant):
    baseline = next(iter(CURVES))
    return [] if variant == baseline else curve_files(output, baseline)
