"""The jobs of a plan are those that Snakemake would run, and their settings those of the config."""

from __future__ import annotations

import dataclasses
import json

import pytest
import yaml

from genaccel.config.compose import compose, sample_runs
from genaccel.plan.dag import needed_jobs
from genaccel.plan.demand import demand
from genaccel.spec import SpecError

TINY = "tests/config/tiny.yaml"


@pytest.fixture(scope="module")
def jobs(project):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        return needed_jobs(TINY)


def test_every_rule_of_a_fresh_study_is_there_and_no_target(jobs):
    rules = {job.rule for job in jobs}
    assert rules >= {"data_simulate", "data_prepare", "train_model", "sample_volumes", "metrics_score"}
    assert not rules & {"all", "data", "train", "sample", "metrics", "figures"}


def test_jobs_come_in_an_order_in_which_they_can_run(jobs):
    order = [job.rule for job in jobs]
    assert order.index("data_prepare") < order.index("train_model") < order.index("sample_volumes")


def test_a_job_carries_what_its_rule_asks_for(jobs):
    train = next(job for job in jobs if job.rule == "train_model")
    assert train.memory_bytes >= 16e9
    assert train.runtime_min >= 60
    assert train.threads > 2  # not capped at this machine's cores
    assert json.loads(train.spec)["train"]["steps"] == 8


def test_a_study_for_the_cpu_asks_for_no_gpu(jobs):
    assert {job.gpus for job in jobs} == {0}


def test_every_sampler_with_every_number_of_steps_is_a_demand(jobs, project):
    config = compose(yaml.safe_load((project / TINY).read_text()))
    demands = [d for job in jobs if job.rule == "sample_volumes" and (d := demand(job, {"test": 3}))]
    assert len(demands) == len(sample_runs(config, "tiny"))
    # Three volumes in one batch: as many evaluations as steps.
    assert sum(d.steps for d in demands) == sum(steps for _, steps, _ in sample_runs(config, "tiny"))


@pytest.mark.parametrize(("volumes", "batches"), [(1, 1), (4, 1), (5, 2), (9, 3)])
def test_evaluations_are_counted_by_batches(jobs, volumes, batches):
    job = next(job for job in jobs if job.rule == "sample_volumes")
    asked = demand(job, {"test": volumes})
    assert asked.steps == int(job.names["steps"]) * batches
    assert asked.batch == min(4, volumes)


def test_a_training_step_counts_every_micro_step(jobs):
    job = next(job for job in jobs if job.rule == "train_model")
    spec = json.loads(job.spec)
    spec["train"] |= {"steps": 10, "accumulate": 3, "processes": 2}
    asked = demand(dataclasses.replace(job, spec=json.dumps(spec)), {})
    assert (asked.steps, asked.devices) == (30, 2)


def test_a_fault_that_snakemake_finds_is_said(project, monkeypatch):
    monkeypatch.chdir(project)
    (project / "config/broken.yaml").write_text("study: [")
    with pytest.raises(SpecError):
        needed_jobs("config/broken.yaml")
