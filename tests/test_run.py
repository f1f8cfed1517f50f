"""The command `genaccel run`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from genaccel.cli import main
from genaccel.config.reading import read_yaml
from genaccel.run import _checkout, _living_snakemake
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


def test_a_snakemake_that_works_in_this_folder_is_found(checkout):
    assert _living_snakemake() is None
    (checkout / "snakemake").write_text("import time; print('up', flush=True); time.sleep(60)")
    other = subprocess.Popen([sys.executable, "snakemake"], stdout=subprocess.PIPE, text=True)
    try:
        other.stdout.readline()
        assert _living_snakemake() == other.pid
    finally:
        other.kill()
        other.wait()
