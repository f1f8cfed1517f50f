"""Processes on one machine and on the nodes of a SLURM job; SLURM's commands are stand-ins."""

from __future__ import annotations

import os
import sys

import pytest

from genaccel import launch as module
from genaccel.allocation import Allocation, find_allocation
from genaccel.launch import launch, main
from genaccel.spec import SpecError


class Became(Exception):
    """Instead of a process that is replaced."""


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    for name in [*filter(lambda name: name.startswith("SLURM_"), os.environ), "TORCHELASTIC_RUN_ID"]:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Commands of SLURM in PATH: ``slurm(scontrol="...")`` writes their scripts; nothing else is in PATH but bash."""

    def write(**scripts: str) -> None:
        for name, script in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/bash\n{script}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return write


SCONTROL = """
case "$*" in
  "--oneliner show job 77") echo "JobId=77 ReqNodeList=(null) NodeList=gpu[1-2] BatchHost=gpu1 NumNodes=2" ;;
  "--oneliner show node gpu1") echo "NodeName=gpu1 NodeAddr=10.0.0.1 NodeHostName=gpu1" ;;
  "show hostnames gpu[1-2]") echo gpu1; echo gpu2 ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac"""


def started(monkeypatch, call) -> list[str]:
    """The command that this process would have become."""

    def become(file, command):
        raise Became(*command)

    monkeypatch.setattr(module.os, "execvp", become)
    with pytest.raises(Became) as became:
        call()
    return list(became.value.args)


def test_outside_of_slurm_torchrun_starts_all(monkeypatch):
    command = started(monkeypatch, lambda: launch("genaccel.train", ["--spec", "{}"], 4))
    assert command[1:] == [
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"),
        *("-m", "genaccel.train", "--spec", "{}"),
    ]


@pytest.mark.parametrize(("processes", "started_by"), [(1, None), (4, "run-1")])
def test_one_process_and_those_that_torchrun_started_go_on(monkeypatch, processes, started_by):
    if started_by:
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", started_by)
    assert launch("genaccel.train", [], processes) is None


@pytest.mark.parametrize("nodes", ["SLURM_JOB_NODELIST", None])
def test_the_nodes_come_from_the_environment_or_from_scontrol(slurm, monkeypatch, nodes):
    slurm(scontrol=SCONTROL)
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    if nodes:
        monkeypatch.setenv(nodes, "gpu[1-2]")
    assert find_allocation() == Allocation("77", ("gpu1", "gpu2"))


def test_on_one_node_torchrun_starts_all(slurm, monkeypatch):
    slurm()
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "gpu1")
    assert "--standalone" in started(monkeypatch, lambda: launch("genaccel.train", [], 4))


def test_on_several_nodes_srun_starts_one_launcher_each(slurm, monkeypatch):
    slurm(scontrol=SCONTROL, srun="")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    command = started(monkeypatch, lambda: launch("genaccel.train", ["--spec", "{}"], 8))
    at = command.index(sys.executable)
    assert command[0] == "srun"
    assert {"--jobid=77", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"} <= set(command[:at])
    assert command[at + 1 :] == [
        *("-m", "genaccel.launch", "--nodes", "2", "--each", "4", "--host", "10.0.0.1", "--port", "20077"),
        *("--job", "77"),
        *("genaccel.train", "--spec", "{}"),
    ]


def test_on_its_node_the_launcher_becomes_torchrun_with_the_nodes_rank(monkeypatch):
    monkeypatch.setenv("SLURM_NODEID", "1")
    arguments = ["--nodes", "2", "--each", "4", "--host", "gpu1", "--port", "20077", "--job", "77"]
    command = started(monkeypatch, lambda: main([*arguments, "genaccel.train", "--spec", "{}", "--threads", "2"]))
    assert {"--nnodes=2", "--node-rank=1", "--nproc-per-node=4", "--master-addr=gpu1"} <= set(command)
    assert command[-6:] == ["-m", "genaccel.train", "--spec", "{}", "--threads", "2"]


def test_processes_that_cannot_be_shared_out_are_an_error(slurm, monkeypatch):
    slurm(scontrol=SCONTROL, srun="")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    with pytest.raises(
        SpecError, match=r"3 processes cannot be shared out evenly among the 2 nodes of job 77 \(gpu1, "
    ):
        launch("genaccel.train", [], 3)


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({"scontrol": SCONTROL}, "there is no srun in PATH"),
        ({}, "there is no scontrol in PATH to ask"),
        ({"scontrol": "echo 'slurm_load_jobs error: Invalid job id' >&2; exit 1"}, "failed: .*Invalid job id"),
        ({"scontrol": "echo 'JobId=77 NodeList=(null)'"}, "names no nodes"),
    ],
)
def test_a_slurm_that_does_not_answer_is_an_error_that_says_so(slurm, monkeypatch, scripts, message):
    slurm(**scripts)
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    with pytest.raises(SpecError, match=message):
        launch("genaccel.train", [], 2)


def test_without_srun_the_launcher_has_no_rank(capsys):
    with pytest.raises(SystemExit):
        main(["--nodes", "2", "--each", "1", "--host", "a", "--port", "1", "--job", "7", "genaccel.train"])
    assert "launch: neither SLURM_NODEID nor SLURM_PROCID is set" in capsys.readouterr().err


def test_jobs_on_one_host_meet_at_different_ports():
    assert len({Allocation(job, ("a",)).port for job in ("77", "78", "77_1")}) == 3
