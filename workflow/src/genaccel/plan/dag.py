"""The jobs that a study would run, read from Snakemake's own DAG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from genaccel.dry_run import describe_needed


@dataclass(frozen=True)
class Job:
    """One job that would run.

    Attributes:
        names: its wildcards, e.g. ``{"model": "med_ddpm"}``.
        spec: the canonical JSON of its settings; empty for a rule without.
        threads: as the rule asks; a machine or profile with fewer gives fewer.
        memory_bytes, runtime_min: what the rule asks of the host; 0 where it says nothing.
        gpus: devices it asks for.
    """

    rule: str
    names: dict[str, str]
    spec: str
    threads: int
    memory_bytes: int
    runtime_min: int
    gpus: int

    def __str__(self) -> str:
        return " ".join([self.rule, *(f"{key}={value}" for key, value in sorted(self.names.items()))])


def needed_jobs(config: str) -> list[Job]:
    """The jobs that ``snakemake --configfile CONFIG`` would run now, in an order in which they can.

    Raises:
        SpecError: Snakemake found a fault in the study; holds what it said.
    """
    # Cores as many as a rule may ask for: with fewer, Snakemake caps `threads` in the plan too.
    return describe_needed(config, _job, cores=1_000)


def _job(dag: Any, job: Any) -> Job:
    return Job(
        rule=job.rule.name,
        names=dict(job.wildcards_dict),
        spec=str(job.params.get("spec", "")),
        threads=job.threads,
        memory_bytes=_number(job.resources.get("mem_mb")) * 10**6,
        runtime_min=_number(job.resources.get("runtime")),
        gpus=_number(job.resources.get("gpu")),
    )


def _number(resource: object) -> int:
    """A resource that may be left to the scheduler (``<TBD>``) or not be asked for."""
    return resource if isinstance(resource, int) else 0
