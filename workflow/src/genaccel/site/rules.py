"""Applies the site file to Snakemake's rules, and checks what a profile says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from genaccel.site.placement import Need, place
from genaccel.site.spec import Site
from genaccel.spec import SpecError, nearest

PLACED = (
    "slurm_partition", "slurm_account", "constraint", "qos", "slurm_extra", "gpu", "gpu_model", "gres", "nodes", "mpi",
    "tasks", "tasks_per_gpu", "mem_mb", "runtime", "_cores", "tmpdir",
)  # fmt: skip
"""Resources that the site file decides; `_cores` is how Snakemake keeps a rule's threads."""
OWN = ("slurm_partition", "slurm_account", "constraint", "qos", "tmpdir")
"""Those of them that a profile's set-resources may still say for one rule: what it says wins."""


def check_names(rules: Iterable[Any], named: Mapping[str, Iterable[str]]) -> None:
    """Refuses a name that is no rule, which Snakemake would pass over in silence.

    Args:
        rules: Snakemake's rules.
        named: by the profile's key (``set-resources``), the rules it names.

    Raises:
        SpecError: with the nearest rule.
    """
    known = {rule.name for rule in rules}
    for key, names in named.items():
        for name in names:
            if name not in known:
                raise SpecError(f"profile: {key} names {name!r}, which is no rule; {nearest(name, known)}")


def check_requests(rules: Iterable[Any]) -> None:
    """Refuses ``gpu`` and ``gres`` at once, which SLURM would refuse hours later. Before ``place_rules``.

    Raises:
        SpecError: naming the rule.
    """
    for rule in rules:
        asked = dict(rule.resources.items())
        if "gres" in asked and "gpu" in asked and (asked["gpu"].is_evaluable() or asked["gpu"].value):
            raise SpecError(
                f"profile: {rule.name} has `gpu` and `gres` at once, which SLURM refuses; take `gres` out of "
                "set-resources (profiles/site.yaml says how devices are asked for), or set `gpu: 0` beside it"
            )


def place_rules(rules: Iterable[Any], site: Site, profile: str, overwritten: Mapping[str, Iterable[str]]) -> None:
    """Makes every rule's resources those of this cluster, for each job when it is known.

    Args:
        rules: Snakemake's rules, whose resources are replaced.
        site: the site file.
        profile: row of ``site.profiles``.
        overwritten: by rule, the resources that the profile's set-resources gives.
    """
    site.default_device(profile)
    for rule in rules:
        asked = dict(rule.resources.items())
        for name in PLACED:
            if name in OWN and name in overwritten.get(rule.name, ()):
                continue
            if name == "tmpdir" and not site.scratch:
                continue
            # Snakemake asks for the number of threads first, and without telling it.
            evaluate = _threads if name == "_cores" else _resource
            rule.resources[name] = evaluate(name, asked, site, profile)


def _resource(name: str, asked: Mapping[str, Any], site: Site, profile: str) -> Callable[..., Any]:
    def resource(wildcards, input, attempt, threads, rulename, async_run):
        given = {"input": input, "attempt": attempt, "threads": threads, "rulename": rulename, "async_run": async_run}
        return place(_need(asked, wildcards, given), site, profile)[name]

    return resource


def _threads(name: str, asked: Mapping[str, Any], site: Site, profile: str) -> Callable[..., Any]:
    # Memory and time may hang on the size of inputs, which Snakemake waits for with all but the threads.
    row = {name: asked[name] for name in ("gpu", "gpu_model", "nodes") if name in asked}

    def threads(wildcards, input, attempt, rulename, async_run):
        given = {"input": input, "attempt": attempt, "rulename": rulename, "async_run": async_run}
        threads = asked["_cores"].evaluate(wildcards, **given).value
        return place(_need(row, wildcards, {**given, "threads": threads}), site, profile)[name]

    return threads


def _need(asked: Mapping[str, Any], wildcards: Any, given: Mapping[str, Any]) -> Need:
    def value(name: str) -> Any:
        return asked[name].evaluate(wildcards, **given).value if name in asked else None

    return Need(
        rule=given["rulename"],
        devices=value("gpu") or 0,
        model=value("gpu_model") or "",
        nodes=value("nodes"),
        extra=value("slurm_extra"),
        mem_mb=value("mem_mb"),
        runtime=value("runtime"),
        threads=given["threads"],
        attempt=given["attempt"],
    )
