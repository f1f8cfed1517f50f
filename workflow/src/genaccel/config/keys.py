"""Which stages each key of the config reruns, found by changing it and looking at the jobs' settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from genaccel.config.compose import Config, comparisons, curves, job, measured_devices, optimize_variants, sample_runs
from genaccel.spec import Spec, SpecError

CONSUMERS = {
    "data_simulate": ("simulate", "dataset"),
    "data_prepare": ("data", "dataset"),
    "train_model": ("train", "model"),
    "train_curves": ("curves", "of_curves"),
    "sample_volumes": ("sample", "model", "sampler", "steps", "variant"),
    "metrics_real": ("real", "dataset"),
    "metrics_segmenter": ("segmenter", "dataset"),
    "metrics_score": ("metrics", "model", "sampler", "steps", "variant"),
    "metrics_compare": (
        "compare",
        "model",
        "sampler",
        "steps",
        "variant",
        "base_sampler",
        "base_steps",
        "base_variant",
    ),
    "optimize_measure": ("optimize", "device", "model", "measured"),
    "profile_model": ("profile", "device", "model", "profiled"),
    "figures_subjects": ("figure", "name"),
    "figures_qc_montage": ("figure", "name"),
    "figures_loss_curve": ("figure", "name"),
    "figures_sample_montage": ("figure", "name"),
    "figures_metric_table": ("figure", "name"),
    "figures_sampler_steps": ("figure", "name"),
    "figures_provenance": ("figure", "name"),
    "figures_speedups": ("figure", "of_optimize"),
    "figures_training_curves": ("figure", "any_curves"),
    "figures_kernel_breakdown": ("figure", "of_profile"),
    "figures_instruction_mix": ("figure", "of_profile"),
    "figures_memory_system": ("figure", "of_profile"),
    "figures_warp_states": ("figure", "of_profile"),
    "figures_priority_scores": ("figure", "of_profile"),
    "figures_counters_change": ("figure", "of_profile"),
}
"""Rules with settings: the kind of job and the names that tell its jobs apart."""

FOLLOWERS = {
    "data_simulate": ("data_prepare",),
    "data_prepare": (
        "train_model",
        "sample_volumes",
        "metrics_real",
        "metrics_segmenter",
        "metrics_score",
        "metrics_compare",
        "figures_subjects",
        "figures_qc_montage",
        "figures_sample_montage",
    ),
    "train_model": ("train_curves", "sample_volumes", "figures_loss_curve", "figures_provenance"),
    "train_curves": ("train_curves_table",),
    "train_curves_table": ("figures_training_curves",),
    "sample_volumes": ("metrics_score", "metrics_compare", "figures_sample_montage"),
    "metrics_real": ("metrics_score", "metrics_compare"),
    "metrics_segmenter": ("metrics_score",),
    "metrics_score": ("metrics_compare", "metrics_table", "figures_provenance"),
    "metrics_compare": ("metrics_table", "figures_provenance"),
    "optimize_measure": ("optimize_table", "figures_provenance"),
    "optimize_table": ("figures_speedups",),
    "profile_model": ("profile_table", "figures_provenance"),
    "profile_table": (
        "figures_kernel_breakdown",
        "figures_instruction_mix",
        "figures_memory_system",
        "figures_warp_states",
        "figures_priority_scores",
        "figures_counters_change",
    ),
    "metrics_table": ("figures_metric_table", "figures_sampler_steps", "figures_speedups"),
}
"""Rules that read what a rule makes; a test compares this with the real DAG."""

STAGES = ("data", "train", "sample", "optimize", "profile", "metrics", "figures")


def keys(spec: Spec, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every key of a composed config with its value and another valid value, as ``(path, value, other)``.

    Keys without another value (a name that others refer to, the only choice there is) are left out.
    """
    for name, field in type(spec).model_fields.items():
        value, path = getattr(spec, name), f"{prefix}{name}"
        other = (field.examples or [None])[0]
        if isinstance(value, Spec) and other is None:
            yield from keys(value, f"{path}.")
        elif isinstance(value, dict) and any(isinstance(entry, Spec) for entry in value.values()):
            for entry_name, entry in value.items():
                yield from keys(entry, f"{path}.{entry_name}.")
        elif other is not None and other != value:
            yield path, value, other


def consumers(config: Mapping[str, Any], path: str, other: Any) -> set[str]:
    """Rules with a job whose settings change, or that is new, when one key changes."""
    before, after = (_jobs(Config.build(dict(c))) for c in (config, changed(config, path, other)))
    return {rule for rule, name in after if before.get((rule, name)) != after[rule, name]}


def reruns(config: Mapping[str, Any], path: str, other: Any) -> set[str]:
    """Rules that run again when one key changes: its consumers and all that follow, as far as the study has them."""
    return followed_by(consumers(config, path, other)) & present(Config.build(changed(config, path, other)))


def present(config: Config) -> set[str]:
    """Rules with a job in a study: some stages can be switched off, or find nothing to compare."""
    found = {rule for rule, _ in _jobs(config)}
    # Tables have no settings: they are there where what they gather is.
    return found | {reader for rule in found for reader in FOLLOWERS.get(rule, ()) if reader not in CONSUMERS}


def followed_by(rules: set[str]) -> set[str]:
    """The rules and all that read what they make, directly or not."""
    found: set[str] = set()
    todo = list(rules)
    while todo:
        rule = todo.pop()
        if rule not in found:
            found.add(rule)
            todo += FOLLOWERS.get(rule, ())
    return found


def changed(config: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of plain settings with one key changed."""
    head, _, rest = path.partition(".")
    return {**config, head: changed(config.get(head) or {}, rest, value) if rest else value}


def table(config: Config) -> str:
    """Markdown: key, default, stages that run again."""
    raw = config.model_dump(mode="json")
    lines = ["| key | default | runs again |", "| --- | --- | --- |"]
    for path, value, other in keys(config):
        rules = reruns(raw, path, other)
        stages = [stage for stage in STAGES if any(rule.startswith(f"{stage}_") for rule in rules)]
        plain = value.model_dump(mode="json") if isinstance(value, Spec) else value
        text = json.dumps(plain, default=lambda spec: spec.model_dump(mode="json", exclude_none=True))
        lines.append(f"| `{path}` | `{text}` | {', '.join(stages) or 'nothing'} |")
    return "\n".join(lines) + "\n"


def _jobs(config: Config) -> dict[tuple[str, str], str]:
    """Settings of every job of a study, by rule and names."""
    models = [{"model": model} for model in config.models]
    places = [m | {"device": device.name} for device in measured_devices(config) for m in models]
    names = {
        "dataset": [{"dataset": name} for name in config.data],
        "model": models,
        "variant": [m | run._asdict() for m in models for run in sample_runs(config, m["model"])],
        "base_variant": [
            m | run._asdict() | {f"base_{key}": value for key, value in base._asdict().items()}
            for m in models
            for run, base in comparisons(config, m["model"])
        ],
        "measured": [p | {"variant": variant} for p in places for variant in optimize_variants(config)],
        "profiled": [p | {"variant": variant} for p in places for variant in config.profile.variants],
        "name": [{"name": "any"}],
        "of_optimize": [{"name": "any"}] if config.optimize.variants else [],
        "of_curves": [{"variant": variant} for variant in curves(config)],
        "any_curves": [{"name": "any"}] if curves(config) else [],
        "of_profile": [{"name": "any"}] if config.profile.variants else [],
    }
    found = {}
    for rule, (kind, *keys_of_job) in CONSUMERS.items():
        for given in names[keys_of_job[-1]]:
            try:
                found[rule, str(given)] = job(config, kind, **given).canonical()
            except SpecError as error:
                # A sample table that is not there yet: a change all the same.
                found[rule, str(given)] = str(error)
    return found
