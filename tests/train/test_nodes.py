"""Training over two nodes, which are two processes of this machine; SLURM's commands are stand-ins."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from genaccel.atomic import one_at_a_time
from genaccel.measurement import read_run
from genaccel.spec import SpecError
from genaccel.train.__main__ import main

SCONTROL = """#!/bin/bash
case "$*" in
  "--oneliner show job "*) echo "JobId=$4 NodeList=node[1-2] NumNodes=2" ;;
  "show hostnames "*) echo node1; echo node2 ;;
  "--oneliner show node node1") echo "NodeName=node1 NodeAddr=localhost" ;;
esac
"""
SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
for node in 0 1; do SLURM_NODEID=$node "$@" & started+=($!); done
status=0
for process in "${started[@]}"; do wait "$process" || status=$?; done
exit $status
"""


def test_a_training_asks_for_its_processes(job, arguments, monkeypatch):
    asked = []

    def launch(*what):
        asked.append(what)
        raise SpecError("enough")

    monkeypatch.setattr("genaccel.train.__main__.launch", launch)
    given = arguments(job(processes=4))
    with pytest.raises(SystemExit):
        main(given)
    assert asked == [("genaccel.train", given, 4)]


def test_processes_start_once_no_other_training_is_at_work(job, arguments):
    """A group of processes, of which the first waited, would lose the others to their time limit."""
    given = arguments(job(processes=2))
    checkpoints = Path(given[given.index("--checkpoints") + 1])
    checkpoints.mkdir()
    with one_at_a_time(checkpoints / "lock", "trains"):
        second = subprocess.Popen([sys.executable, "-m", "genaccel.train", *given], stdout=subprocess.PIPE, text=True)
        try:
            assert f"another process trains in {checkpoints}; waiting" in second.stdout.readline()
            # Which torchrun would have replaced.
            assert "genaccel.train" in Path(f"/proc/{second.pid}/cmdline").read_text().split("\0")[2]
        finally:
            second.kill()
            second.wait()


def test_a_training_runs_over_the_nodes_of_its_job(tmp_path, job, arguments):
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, script in (("scontrol", SCONTROL), ("srun", SRUN)):
        (commands / name).write_text(script)
        (commands / name).chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    # As a job step leaves it: nothing of SLURM's but the number.
    environment |= {"PATH": f"{commands}:{os.environ['PATH']}", "SLURM_JOB_ID": str(os.getpid())}
    given = arguments(job(processes=2, batch=1, steps=4))
    # As the stage's first process does, without its imports, which would take longer than all the rest.
    start = f"from genaccel.launch import launch; launch('genaccel.train', {given!r}, 2)"
    done = subprocess.run(
        [sys.executable, "-c", start], capture_output=True, text=True, env=environment, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = read_run(given[given.index("--measurement") + 1])
    assert run.n_devices == 2
    assert run.provenance["parallelism"]["processes"] == run.provenance["parallelism"]["nodes"] == 2
    with open(given[given.index("--loss") + 1]) as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3", "4"]
    assert done.stdout.count("train: 3 volumes, 2 an optimizer step") == 1
