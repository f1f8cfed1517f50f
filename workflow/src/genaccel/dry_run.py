"""Asks Snakemake's own DAG which jobs of a study would run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

from genaccel.spec import SpecError

Answer = TypeVar("Answer")


def describe_needed(config: str, describe: Callable[[Any, Any], Answer], cores: int = 1) -> list[Answer]:
    """What ``describe`` says of each job that ``snakemake --configfile CONFIG`` would run, in a possible order.

    Args:
        config: path of the study's config.
        describe: takes Snakemake's DAG and job.
        cores: Snakemake caps the threads of a job at them.

    Raises:
        SpecError: Snakemake found a fault in the study; holds what it said.
    """
    said = io.StringIO()
    try:
        # A dry run prints its whole plan, whatever it is told about being quiet.
        with redirect_stderr(said), redirect_stdout(said):
            return list(_needed(config, describe, cores))
    except Exception as error:
        raise SpecError(f"{error}\n{said.getvalue()}".strip()) from None


def _needed(config: str, describe: Callable[[Any, Any], Answer], cores: int) -> Iterator[Answer]:
    from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi

    with SnakemakeApi(OutputSettings(dryrun=True)) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=cores),
            config_settings=ConfigSettings(configfiles=[Path(config)]),
            snakefile=Path("Snakefile"),
        )
        # Without this, what a killed run left incomplete would be an error instead of a job.
        workflow.dag(DAGSettings(force_incomplete=True)).execute_workflow(executor="dryrun")
        # The one private attribute that tells which jobs a dry run found.
        dag = workflow._workflow.dag
        needed = {job for job in dag.needrun_jobs(exclude_finished=False) if not job.rule.norun}
        for level in dag.toposorted():
            for job in sorted(needed & set(level), key=lambda job: (job.rule.name, sorted(job.wildcards_dict.items()))):
                yield describe(dag, job)
