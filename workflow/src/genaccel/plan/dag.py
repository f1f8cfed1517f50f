"""The jobs that a study would run, read from Snakemake's own DAG."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from genaccel.spec import SpecError


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
    said = io.StringIO()
    try:
        # A dry run prints its whole plan, whatever it is told about being quiet.
        with redirect_stderr(said), redirect_stdout(said):
            return list(_dry_run(config))
    except Exception as error:
        raise SpecError(f"{error}\n{said.getvalue()}".strip()) from None


def _dry_run(config: str) -> Iterator[Job]:
    from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi

    with SnakemakeApi(OutputSettings(dryrun=True)) as api:
        workflow = api.workflow(
            # As many as a rule may ask for: with fewer, Snakemake caps `threads` in the plan too.
            resource_settings=ResourceSettings(cores=1_000),
            config_settings=ConfigSettings(configfiles=[Path(config)]),
            snakefile=Path("Snakefile"),
        )
        workflow.dag(DAGSettings()).execute_workflow(executor="dryrun")
        # The one private attribute that tells which jobs a dry run found.
        dag = workflow._workflow.dag
        needed = {job for job in dag.needrun_jobs(exclude_finished=False) if not job.rule.norun}
        for level in dag.toposorted():
            for job in sorted(needed & set(level), key=lambda job: (job.rule.name, sorted(job.wildcards_dict.items()))):
                yield Job(
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
