"""The command `genaccel run`."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from genaccel.cli import main
from genaccel.config.reading import read_yaml
from genaccel.run import _checkout, _living_snakemake, _looks, run_study
from genaccel.site.at_work import PLACE, check_alone
from genaccel.site.orphans import find_orphans, name_prefix, of_study, queued_jobs
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


def test_ctrl_c_while_slurm_is_asked_is_one_line(left, monkeypatch, capsys):
    def interrupt(*command, **options):
        raise KeyboardInterrupt

    left(os.uname().nodename)
    monkeypatch.setattr("subprocess.run", interrupt)
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--config", "config/mine.yaml"])
    assert (stopped.value.code, capsys.readouterr().err) == (130, "genaccel: interrupted\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is no YAML"),
        ("", "holds no settings"),
        ("- a", "holds no settings"),
        ("train: {steps: 1}\nsample: {}\ntrain: {batch: 1}", "line 3: the key `train` stands twice"),
        ("train:\n  steps: 1\n  steps: 2", "line 3: the key `steps` stands twice"),
        ("limits:\n  runtime: 24:00:00", "line 2: YAML counts 24:00:00 in sixties, as 86400"),
    ],
)
def test_what_is_no_config_is_refused(checkout, text, message):
    Path("config/bad.yaml").write_text(text)
    with pytest.raises(SpecError, match=message):
        read_yaml("config/bad.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("groups: {}", r"groups: {} is empty or no map"),
        ("groups: {figures_subjects: 2}", "groups.figures_subjects: 2 where a group belongs"),
        ("group-components: {tables: [8]}", r"group-components.tables: \[8\] where a number belongs"),
        ("set-threads: [train_model]", r"set-threads: \['train_model'\] is empty or no map"),
        ("set-resources: {train_model: 5}", "set-resources.train_model: 5 where a map such as"),
        ("set-resources: {train_model: {}}", "set-resources.train_model: {} where a map such as"),
    ],
)
def test_a_map_of_a_profile_that_is_none_names_the_file_and_the_key(checkout, text, message):
    path = Path("profiles/default/config.yaml")
    path.write_text(text)
    with pytest.raises(SpecError, match=f"{path}: {message}"):
        run_study("config/mine.yaml", "profiles/default", "")


def test_a_second_run_in_one_checkout_is_refused_and_names_the_first(checkout):
    with _checkout(), pytest.raises(SpecError, match=rf"another run \(process {os.getpid()} on "), _checkout():
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
        f"1|RUNNING|rule_train_model_wildcards_a|{name}|{checkout}\n"
        f"2|PENDING|rule_train_model_wildcards_b|mine_{name}|{checkout}\n"
        f"3|RUNNING|rule_data_prepare_wildcards_c|{name}|{checkout}\n"
        f"4|RUNNING|rule_data_prepare_wildcards_c|{name}|{checkout}/elsewhere\n"
        f"5|RUNNING|(null)|by-hand|{checkout}\n"
        f"6|RUNNING|(null)|{name}|{checkout}\n"
        f"7|RUNNING|rule_data_prepare|{name}-2|{checkout}\n"
        f"8|RUNNING|rule_x|{name}|{checkout}|a|b\n"
        f"9|RUNNING|x|rule_data_prepare|{name}|{checkout}|\n"
    )
    assert {orphan.job: orphan.goes_on for orphan in find_orphans()} == {"1": True, "2": False, "3": False}


@pytest.mark.parametrize(
    ("prefix", "cancelled"),
    [(name_prefix("mine") + "_", True), ("", True), ("group_7_", True), (name_prefix("my_other") + "_", False)],
)
def test_jobs_of_another_study_are_left_alone(checkout, squeue, capsys, prefix, cancelled):
    squeue(f"1|PENDING|rule_data_prepare|{prefix}{uuid.uuid4()}|{checkout}")
    orphans = find_orphans()
    assert of_study(orphans, "mine") == (orphans if cancelled else [])
    assert ("1 (rule_data_prepare, pending) of my_other" in capsys.readouterr().out) is not cancelled


@pytest.mark.parametrize(
    ("printed", "status", "message"),
    [
        ("Unable to contact slurm controller", 1, r"does not say which jobs are in its queue \(Unable to contact"),
        ("", 3, r"does not say which jobs are in its queue \(exit status 3\)"),
        ("Welcome to the cluster!", 0, "squeue printed 'Welcome to the cluster!' where a job was asked for"),
    ],
)
def test_a_slurm_that_does_not_answer_is_an_error(squeue, printed, status, message):
    squeue(printed, status=status)
    with pytest.raises(SpecError, match=message):
        find_orphans()


@pytest.fixture
def left(checkout, monkeypatch):
    """What a killed Snakemake left: its lock, a job in SLURM, and a word of where it ran.

    ``left(host, job)`` writes it; the file ``asked`` then gets whatever is asked of Snakemake and of scancel.
    """
    (checkout / "profiles/default/config.yaml").write_text("executor: slurm\n")
    (checkout / "snakemake").write_text(f"#!/bin/sh\necho snakemake >> {checkout}/asked\n")
    (checkout / "scancel").write_text(f"#!/bin/sh\necho scancel >> {checkout}/asked\n> {checkout}/queue\n")
    (checkout / "squeue").write_text(
        f"#!/bin/sh\ncase $* in *%Z*) cat {checkout}/queue;; *) cut -d'|' -f1 {checkout}/queue;; esac\n"
    )
    for name in ("snakemake", "scancel", "squeue"):
        (checkout / name).chmod(0o755)
    (checkout / "queue").write_text(f"1|PENDING|rule_data_prepare|{uuid.uuid4()}|{checkout}\n")
    (checkout / "asked").touch()
    monkeypatch.setenv("PATH", f"{checkout}:{os.environ['PATH']}")
    monkeypatch.setattr("genaccel.run.SNAKEMAKE", (str(checkout / "snakemake"),))

    def write(host: str, job: str = "") -> Path:
        (checkout / ".snakemake/locks").mkdir(parents=True)
        (checkout / ".snakemake/locks/0.output.lock").touch()
        PLACE.mkdir()
        path = PLACE / f"{host}-4194305"
        path.write_text(job)
        return path

    return write


@pytest.mark.parametrize("job", ["", "1"])
def test_a_snakemake_of_another_machine_keeps_its_lock_and_its_jobs(checkout, left, job):
    """In the second case it runs in a job of SLURM itself, which is in the queue."""
    path = left("login-2", job)
    with pytest.raises(SpecError, match=rf"process 4194305 on login-2.*`rm {path}`"):
        run_study("config/mine.yaml", "profiles/default", "", ["data"])
    assert (checkout / "asked").read_text() == ""


@pytest.mark.parametrize(("host", "job"), [(os.uname().nodename, ""), ("node-7", "99")])
def test_a_snakemake_that_is_known_to_be_dead_is_cleared_up_after(checkout, left, host, job):
    path = left(host, job)
    assert run_study("config/mine.yaml", "profiles/default", "", ["data"]) == 0
    assert (checkout / "asked").read_text().split() == ["snakemake", "scancel", "snakemake"]
    assert not path.exists()


@pytest.mark.parametrize("fault", ["colleague", "no squeue", "no locks"])
def test_a_snakemake_of_which_nothing_can_be_learnt_counts_as_living(left, monkeypatch, fault):
    def flock(file, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    left("node-7", "99")
    if fault == "colleague":
        monkeypatch.setattr("os.getuid", lambda: 12345)
    elif fault == "no squeue":
        monkeypatch.setenv("PATH", "")
    else:
        monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(SpecError, match="process 4194305 on node-7"):
        check_alone(queued_jobs if fault == "no squeue" else lambda: {"99"} if fault == "no locks" else set())


@pytest.mark.parametrize("argument", ["-n", "-np", "--dry", "--dag", "--unlock", "--summary"])
def test_no_job_is_cancelled_where_none_is_submitted(checkout, left, argument):
    left(os.uname().nodename)
    run_study("config/mine.yaml", "profiles/default", "", [argument])
    assert "scancel" not in (checkout / "asked").read_text()


@pytest.mark.parametrize("argument", ["-p", "--config", "--report-after-run", "train", "--", "-j4", "--keep-going"])
def test_what_runs_jobs_is_no_look(argument):
    assert not _looks(argument)


def test_a_snakemake_says_where_it_works_until_it_ends(checkout):
    program = "import os, sys\nfrom genaccel.site.at_work import announce\nannounce(); print('up', flush=True); input()"
    other = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    with pytest.raises(SpecError, match=f"process {other.pid} on {os.uname().nodename}"):
        check_alone(set)
    other.communicate("\n")
    assert not list(PLACE.iterdir())


def test_where_there_are_no_locks_a_run_goes_on_and_says_so(checkout, monkeypatch, capsys):
    def flock(file, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", flock)
    with _checkout():
        pass
    assert "this file system keeps no locks" in capsys.readouterr().out
