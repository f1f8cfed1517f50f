"""What is on record of a job whose Snakemake died before it saw the job's end."""

from __future__ import annotations

import pytest
from snakemake.api import ConfigSettings, DAGSettings, OutputSettings, ResourceSettings, SnakemakeApi

from genaccel.site.records import record_at_submission

SNAKEFILE = """
rule all:
    input: "out.txt"
rule make:
    input: "in.txt"
    output: "out.txt"
    params: spec=config["spec"]
    shell: "echo {params.spec} > {output}"
"""


@pytest.fixture
def needed(tmp_path, monkeypatch):
    """Jobs that would run, given to a function; rules of the jobs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "in.txt").write_text("")

    def ask(spec: str, then=lambda persistence, jobs: None) -> set[str]:
        with SnakemakeApi(OutputSettings(dryrun=True)) as api:
            workflow = api.workflow(
                resource_settings=ResourceSettings(cores=1),
                config_settings=ConfigSettings(config={"spec": spec}),
                snakefile=tmp_path / "Snakefile",
            )
            workflow.dag(DAGSettings(force_incomplete=True)).execute_workflow(executor="dryrun")
            dag = workflow._workflow.dag
            jobs = {job for job in dag.needrun_jobs(exclude_finished=False) if not job.rule.norun}
            then(workflow._workflow.persistence, jobs)
            return {job.rule.name for job in jobs}

    return ask


def submitted(persistence, jobs) -> None:
    record_at_submission(persistence)
    for job in jobs:
        job.register(external_jobid="7")


def ended(persistence, jobs) -> None:
    """As the Snakemake inside a job does at its end."""
    for job in jobs:
        for output in job.output:
            persistence._unmark_incomplete(persistence._get_key(output))


@pytest.mark.parametrize(("spec", "reruns"), [("a", set()), ("b", {"make"})])
def test_a_job_that_ended_unseen_reruns_after_an_edit_alone(needed, tmp_path, spec, reruns):
    def run(persistence, jobs):
        submitted(persistence, jobs)
        (tmp_path / "out.txt").write_text("a")
        ended(persistence, jobs)

    assert needed("a", run) == {"make"}
    assert needed(spec) == reruns


def test_a_job_that_did_not_end_runs_again(needed, tmp_path):
    def run(persistence, jobs):
        submitted(persistence, jobs)
        (tmp_path / "out.txt").write_text("half")

    needed("a", run)
    assert needed("a") == {"make"}


def test_back_to_the_settings_before_the_last_it_runs_again(needed, tmp_path):
    def run(persistence, jobs):
        submitted(persistence, jobs)
        (tmp_path / "out.txt").write_text("made")
        ended(persistence, jobs)

    needed("a", run)
    needed("b", run)
    assert needed("a") == {"make"}
