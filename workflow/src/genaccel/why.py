"""What would run again and why, down to the setting or library module that changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from genaccel.code import ROOT, module_hashes
from genaccel.config.compose import compose
from genaccel.config.reading import read_yaml
from genaccel.dry_run import describe_needed

RECORDS = Path(".snakemake/genaccel/code")
"""Where ``record_code`` keeps which modules a hash stood for."""


def record_code(code_hash: str, entries: tuple[str, ...], root: Path = ROOT) -> None:
    """Keeps the modules behind a code hash, so that a later change can be named.

    Best effort: a folder that cannot be written costs only the detail of ``make why``.
    """
    path = RECORDS / f"{code_hash}.json"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"entries": entries, "modules": module_hashes(*entries, root=root)}))
    except OSError:
        pass


def print_reasons(config: str) -> None:
    """Prints each job that would run with its reasons; nothing is run."""
    compose(read_yaml(config))
    lines = reasons(config)
    if not lines:
        print("Nothing would run: everything is up to date.")
    for job, why in lines:
        print(f"{job}: {'; '.join(why)}")


def reasons(config: str) -> list[tuple[str, list[str]]]:
    """Jobs that would run, in order, each with its reasons.

    Raises:
        SpecError: Snakemake found a fault in the study; holds what it said.
    """
    return describe_needed(config, _job)


def _job(dag: Any, job: Any) -> tuple[str, list[str]]:
    name = job.rule.name + "".join(f" {key}={value}" for key, value in sorted(job.wildcards_dict.items()))
    return name, list(_explain(dag.reason(job)))


def _explain(reason: Any) -> Iterator[str]:
    if reason.params_changed:
        yield from changed_params(reason.params_changed.only_old, reason.params_changed.only_new)
    if reason.missing_output:
        yield "not made yet"
        return
    if reason.updated_input_run:
        yield "reads what another job above makes anew"
    if newer := sorted(map(str, reason.updated_input - reason.updated_input_run)):
        yield f"newer: {', '.join(newer[:3])}"
    if reason.incomplete_output:
        yield "left incomplete by a killed run"
    if reason.input_changed:
        yield "other input files than last time"
    if reason.code_changed:
        yield "its shell command changed"
    if reason.software_stack_changed:
        yield "its software environment changed"
    if reason.forced:
        yield "forced"


def changed_params(old: set[str], new: set[str]) -> Iterator[str]:
    """Names the settings and modules that differ between two sets of a rule's params."""
    old_values, new_values = _sorted_by_kind(old), _sorted_by_kind(new)
    if old_values.get("spec") is not None or new_values.get("spec") is not None:
        before, after = dict(_leaves(old_values.get("spec") or {})), dict(_leaves(new_values.get("spec") or {}))
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                yield f"{key}: {json.dumps(before.get(key))} -> {json.dumps(after.get(key))}"
    if old_values.get("code") or new_values.get("code"):
        yield from _changed_modules(old_values.get("code"), new_values.get("code"))


def _sorted_by_kind(params: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in params:
        # Snakemake stores the repr of a param.
        value = text[1:-1].replace("\\'", "'").replace("\\\\", "\\") if text[:1] in "'\"" else text
        try:
            found["spec"] = json.loads(value)
        except json.JSONDecodeError:
            found["code"] = value
    return found


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _changed_modules(old: str | None, new: str | None) -> Iterator[str]:
    try:
        record = json.loads((RECORDS / f"{old}.json").read_text())
    except (OSError, json.JSONDecodeError):
        yield f"code: {old} -> {new}"
        return
    before = record["modules"]
    after = module_hashes(*record["entries"], root=ROOT)
    for module in sorted(before.keys() | after.keys()):
        if module not in before:
            yield f"module {module} is imported now"
        elif module not in after:
            yield f"module {module} is imported no more"
        elif before[module] != after[module]:
            yield f"module {module} was edited"
