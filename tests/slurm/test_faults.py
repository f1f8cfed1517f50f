"""Faults on a real SLURM, each while a training is at work: what follows goes on from its checkpoint to the same bits.

The models of all studies here are the same network under names that say what happens to their training.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

CONFIG = "config/faults.yaml"
RUN = ("run", "--config", CONFIG, "--profile", "profiles/slurm", "--", "train")
STEPS = 8
MEMORY_MB = 1500
# On nodes that a test takes away.
ELSEWHERE = {"on_a_lost_node": "h100", "queued": "v100"}
# Added to the training's loop: it waits after its first checkpoint until the test is ready, and one training then takes
# more memory than it asked for, once.
HOOK = f"""

def _step(self, step=Training.step):
    import sys
    from pathlib import Path
    hold, leak = Path("hold"), Path("leak")
    while self.step_number and hold.exists():
        time.sleep(0.02)
    if self.step_number and leak.exists() and any("/over_its_memory/" in word for word in sys.argv):
        leak.unlink()
        hoard = []
        while True:
            if len(hoard) * 64 < 2 * {MEMORY_MB}:
                hoard.append(b"x" * 2**26)
            time.sleep(0.05)
    step(self)


Training.step = _step
"""


@pytest.fixture(scope="module")
def prepared(site_project, tmp_path_factory) -> Path:
    """A project whose data are made; its profile is the shipped one but for haste and places."""
    models = "{" + ", ".join(f"{model!r}: {device!r}" for model, device in ELSEWHERE.items()) + "}"
    needs = {"gpu": 1, "mem_mb": MEMORY_MB, "gpu_model": f"{models}.get(wildcards.model, 'a100')"}
    folder = site_project(
        tmp_path_factory.mktemp("faults") / "prepared",
        "slurm",
        **{"set-resources": {"train_model": needs}, "set-threads": {"train_model": 1}},
    )
    loop = folder / "workflow/src/genaccel/train/loop.py"
    loop.write_text(loop.read_text() + HOOK)
    for sign in ("hold", "leak"):
        (folder / sign).touch()
    _write_config(folder, "any")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--configfile", CONFIG, "--", "data"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def _write_config(folder: Path, *models: str) -> None:
    raw = yaml.safe_load((folder / "tests/config/tiny.yaml").read_text())
    raw["models"] = dict.fromkeys(models, raw["models"]["tiny"])
    raw["train"] |= {"steps": STEPS, "checkpoint": {"steps": 1}}
    (folder / CONFIG).write_text(yaml.safe_dump(raw))


class Project:
    """A copy of the prepared project on the cluster.

    Attributes:
        run: the `genaccel run` that was started last.
    """

    def __init__(self, folder: Path, models: tuple[str, ...], cluster, submit, wait_until, training_process, patience):
        self.folder, self.cluster, self.patience = folder, cluster, patience
        self._submit, self._wait, self._process = submit, wait_until, training_process
        _write_config(folder, *models)

    def start(self) -> subprocess.Popen[str]:
        self.run = self._submit(self.folder, *RUN)
        return self.run

    def end(self) -> int:
        return self.run.wait(timeout=self.patience)

    def wait_until(self, true):
        try:
            return self._wait(true, self.run)
        except AssertionError as error:
            raise AssertionError(self.output[-6000:]) from error

    def stop_trainings(self, *models: str) -> None:
        """Stops trainings after their first checkpoint: they go on at a signal, as a hung process may."""
        checkpoints = [self.folder / "results/tiny/train" / model / "checkpoints" for model in models]
        self.wait_until(lambda: all(list(folder.glob("*/step-*.pt")) for folder in checkpoints))
        for model in models:
            self.signal_training(model, signal.SIGSTOP)
        (self.folder / "hold").unlink()

    def signal_training(self, model: str, number: signal.Signals) -> None:
        os.kill(self._process(self.folder, model), number)

    def jobs(self, model: str) -> list[SimpleNamespace]:
        mine = [job for job in self.cluster.jobs() if job.folder == str(self.folder)]
        return sorted((job for job in mine if job.comment.endswith(f"_{model}")), key=lambda job: int(job.id))

    def states(self, model: str) -> list[str]:
        return [job.state for job in self.jobs(model)]

    def log(self, model: str) -> str:
        path = self.folder / f"logs/tiny/train/{model}.log"
        return path.read_text() if path.exists() else ""

    def weights(self, model: str) -> bytes:
        return (self.folder / "results/tiny/train" / model / "weights.safetensors").read_bytes()

    @property
    def output(self) -> str:
        return (self.folder / "snakemake.log").read_text()


@pytest.fixture(scope="module")
def project(prepared, cluster, submit, wait_until, training_process, patience, tmp_path_factory):
    """Copies the prepared project for a study of some models: ``project(*models)``."""
    made: list[Project] = []

    def make(*models: str) -> Project:
        folder = tmp_path_factory.mktemp(models[0]) / "project"
        # With its times, as `cp -a` does.
        shutil.copytree(prepared, folder, symlinks=True, copy_function=shutil.copy2)
        made.append(Project(folder, models, cluster, submit, wait_until, training_process, patience))
        return made[-1]

    yield make
    for each in made:
        if each.run.poll() is None:
            each.run.kill()


@pytest.fixture(scope="module")
def disturbed(project, cluster) -> Project:
    """A study whose trainings meet one fault each, and one that meets none. It is still at work."""
    study = project("undisturbed", "cancelled", "over_its_time", "over_its_memory", "on_a_lost_node")
    study.start()
    study.stop_trainings("cancelled", "over_its_time", "on_a_lost_node")
    cancelled, late, lost = (study.jobs(model)[0] for model in ("cancelled", "over_its_time", "on_a_lost_node"))
    subprocess.run(["scancel", cancelled.id], env=cluster.env, check=True)
    cluster.control("update", f"JobId={late.id}", "TimeLimit=1")
    cluster.control("update", f"NodeName={lost.fields['NodeList']}", "State=DOWN", "Reason=fault")
    return study


@pytest.fixture(scope="module")
def orphaned(project, disturbed, cluster) -> Project:
    """A study whose Snakemake was killed while one job trained and one waited, and that then ran again."""
    cluster.control("update", "NodeName=v100n1", "State=DRAIN", "Reason=full")
    study = project("training", "queued")
    first = study.start()
    study.stop_trainings("training")
    study.wait_until(lambda: study.states("queued") == ["PENDING"])
    snakemake = _child(first.pid)
    first.kill()
    os.kill(snakemake, signal.SIGKILL)
    first.wait()
    study.start()
    study.wait_until(lambda: "waiting until it ends" in study.log("training"))
    study.signal_training("training", signal.SIGCONT)
    cluster.control("update", "NodeName=v100n1", "State=RESUME")
    assert study.end() == 0, study.output[-6000:]
    return study


@pytest.fixture(scope="module")
def terminated(project, disturbed) -> SimpleNamespace:
    """A study whose run got SIGTERM while its job trained, was started again in vain, and again once it had ended."""
    study = project("terminated")
    first = study.start()
    study.stop_trainings("terminated")
    first.terminate()
    study.wait_until(lambda: "Will exit after finishing" in study.output)
    refused = study.start().wait(timeout=study.patience)
    study.signal_training("terminated", signal.SIGCONT)
    stopped = first.wait(timeout=study.patience)
    study.start()
    return SimpleNamespace(study=study, pid=first.pid, codes=(refused, stopped, study.end()))


def _child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_an_orphaned_training_ends_and_its_successor_finds_all_steps(orphaned):
    assert orphaned.states("training") == ["COMPLETED", "COMPLETED"]
    assert f"goes on from step {STEPS}\n" in orphaned.log("training")


def test_a_job_that_still_waits_for_a_dead_snakemake_is_cancelled_and_submitted_again(orphaned):
    assert orphaned.states("queued") == ["CANCELLED", "COMPLETED"]
    assert f"cancelling {orphaned.jobs('queued')[0].id} " in orphaned.output


def test_after_sigterm_running_jobs_end_and_none_runs_again(terminated):
    assert terminated.study.states("terminated") == ["COMPLETED"]
    assert "goes on from" not in terminated.study.log("terminated")
    refused, stopped, last = terminated.codes
    assert (refused, last) == (1, 0)
    assert stopped != 0
    assert f"another run (process {terminated.pid} on {os.uname().nodename}) is at work" in terminated.study.output


@pytest.fixture(scope="module")
def survived(disturbed, cluster) -> Project:
    assert disturbed.end() == 0, disturbed.output[-6000:]
    for node in ("h100n1", "h100n2"):
        if "DOWN" in cluster.control("show", "node", node):
            cluster.control("update", f"NodeName={node}", "State=RESUME")
    return disturbed


@pytest.mark.parametrize(
    ("model", "state"),
    [
        ("cancelled", "CANCELLED"),
        ("over_its_time", "TIMEOUT"),
        ("over_its_memory", "FAILED"),
        ("on_a_lost_node", "NODE_FAIL"),
    ],
)
def test_a_training_that_met_a_fault_goes_on_from_its_checkpoint_to_the_same_bits(survived, model, state):
    assert survived.states(model) == [state, "COMPLETED"]
    assert re.search(r"goes on from step [1-7]$", survived.log(model), re.M)
    assert survived.weights(model) == survived.weights("undisturbed")


def test_what_meets_no_fault_runs_once(survived):
    assert survived.states("undisturbed") == ["COMPLETED"]


def test_a_killed_snakemake_changes_no_bit(survived, orphaned, terminated):
    whole = survived.weights("undisturbed")
    assert orphaned.weights("training") == orphaned.weights("queued") == whole
    assert terminated.study.weights("terminated") == whole
