"""The command `genaccel run`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from genaccel.cli import main
from genaccel.config.reading import read_yaml
from genaccel.run import _checkout, _living_snakemake
from genaccel.site.orphans import find_orphans
from genaccel.spec import SpecError


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/mine.yaml").write_text("study: mine\n")
    (tmp_path / "profiles/default").mkdir(parents=True)
    (tmp_path / "profiles/default/config.yaml").write_text("cores: 1\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "config/mien.yaml"], "there is no config config/mien.yaml; there are `config/mine.yaml`"),
        (
            ["--config", "config/mine.yaml", "--profile", "profiles/slrum"],
            "there is no profile profiles/slrum; there are `profiles/default`",
        ),
    ],
)
def test_a_wrong_path_names_what_there_is(checkout, capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(["run", *arguments])
    assert stopped.value.code == 1
    assert f"genaccel: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is no YAML"),
        ("", "holds no settings"),
        ("- a", "holds no settings"),
        ("train: {steps: 1}\nsample: {}\ntrain: {batch: 1}", "line 3: the key `train` stands twice"),
        ("train:\n  steps: 1\n  steps: 2", "line 3: the key `steps` stands twice"),
    ],
)
def test_what_is_no_config_is_refused(checkout, text, message):
    Path("config/bad.yaml").write_text(text)
    with pytest.raises(SpecError, match=message):
        read_yaml("config/bad.yaml")


def test_a_second_run_in_one_checkout_is_refused_and_names_the_first(checkout):
    with _checkout(), pytest.raises(SpecError, match=rf"another run \(process {os.getpid()}\)"), _checkout():
        pass


def test_a_killed_runs_checkout_is_free_again(checkout):
    program = "import os\nfrom genaccel.run import _checkout\nwith _checkout(): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", program], check=False)
    with _checkout():
        pass


def test_the_checkout_stays_taken_while_a_killed_runs_snakemake_lives(checkout):
    program = (
        "import os, subprocess, sys\nfrom genaccel.run import _checkout\n"
        "with _checkout() as lock:\n"
        "    sleep, quiet = [sys.executable, '-c', 'import time; time.sleep(60)'], subprocess.DEVNULL\n"
        "    child = subprocess.Popen(sleep, pass_fds=(lock,), stdout=quiet, stderr=quiet)\n"
        "    print(child.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    try:
        with pytest.raises(SpecError, match="another run"), _checkout():
            pass
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


@pytest.mark.parametrize(("arguments", "found"), [([], True), (["--target-jobs", "a:", "--mode", "remote"], False)])
def test_a_snakemake_that_works_in_this_folder_is_found_and_one_that_a_job_started_is_not(checkout, arguments, found):
    assert _living_snakemake() is None
    (checkout / "snakemake").write_text("import time; print('up', flush=True); time.sleep(60)")
    other = subprocess.Popen([sys.executable, "snakemake", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        other.stdout.readline()
        assert _living_snakemake() == (other.pid if found else None)
    finally:
        other.kill()
        other.wait()


@pytest.fixture
def squeue(checkout, monkeypatch):
    """Writes an squeue: ``squeue(text, status=0)``."""
    monkeypatch.setenv("PATH", f"{checkout}:{os.environ['PATH']}")

    def write(text: str, status: int = 0) -> None:
        (checkout / "queue").write_text(text)
        (checkout / "squeue").write_text(f"#!/bin/sh\ncat {checkout}/queue >&{2 if status else 1}\nexit {status}\n")
        (checkout / "squeue").chmod(0o755)

    return write


def test_only_what_snakemake_submitted_from_here_is_an_orphan(checkout, squeue):
    name = str(uuid.uuid4())
    squeue(
        f"1|RUNNING|{name}|{checkout}|rule_train_model_wildcards_a\n"
        f"2|PENDING|mine_{name}|{checkout}|rule_train_model_wildcards_b\n"
        f"3|RUNNING|{name}|{checkout}|rule_data_prepare_wildcards_c\n"
        f"4|RUNNING|{name}|{checkout}/elsewhere|rule_data_prepare_wildcards_c\n"
        f"5|RUNNING|by-hand|{checkout}|(null)\n"
    )
    assert {orphan.job: orphan.goes_on for orphan in find_orphans()} == {"1": True, "2": False, "3": False}


def test_a_slurm_that_does_not_answer_is_an_error(squeue):
    squeue("Unable to contact slurm controller", status=1)
    with pytest.raises(SpecError, match=r"does not say which jobs are in its queue \(Unable to contact"):
        find_orphans()
