"""Folders that are shared, read-only, full, damaged or of another clock: a clear message or a correct run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

TINY = "tests/config/tiny.yaml"
TRAINED = "results/tiny/train/tiny"
WEIGHTS = f"{TRAINED}/weights.safetensors"


@pytest.fixture
def study(finished, tmp_path) -> Path:
    """A copy of the finished study whose training writes a checkpoint each step."""
    folder = tmp_path / "project"
    # With its times, as `cp -a` does.
    shutil.copytree(finished, folder, symlinks=True, copy_function=shutil.copy2)
    raw = yaml.safe_load((folder / TINY).read_text())
    raw["train"]["checkpoint"] = {"steps": 1}
    (folder / TINY).write_text(yaml.safe_dump(raw))
    return folder


@pytest.fixture
def untrained(study) -> Path:
    """The same before its training."""
    shutil.rmtree(study / TRAINED)
    return study


def start(folder: Path, *targets: str) -> subprocess.Popen[str]:
    """Starts `genaccel run` as `make run` does."""
    command = [sys.executable, "-m", "genaccel.cli", "run", "--config", TINY, "--cores", "2"]
    return subprocess.Popen(
        [*command, "--", *targets],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder / "workflow/src")},
    )


def run(folder: Path, *targets: str) -> tuple[int, str]:
    started = start(folder, *targets)
    output = started.communicate()[0]
    return started.returncode, output


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """Something mounted on a folder: ``mounted(folder, "-t", "tmpfs", "tmpfs")``."""
    done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        # At once, whoever still looks at it.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def test_a_second_run_in_one_folder_is_refused_and_harms_nothing(untrained, finished, patience, snakemake):
    first = start(untrained, WEIGHTS)
    until = time.monotonic() + patience
    while not list((untrained / TRAINED).glob("checkpoints/*/step-*.pt")):
        assert first.poll() is None, first.communicate()[0]
        assert time.monotonic() < until
        time.sleep(0.02)
    code, output = run(untrained, WEIGHTS)
    assert code == 1
    assert f"another run (process {first.pid} on {os.uname().nodename}) is at work" in output
    bare = snakemake(untrained, "--configfile", TINY, "--", WEIGHTS, check=False)
    assert bare.returncode != 0
    assert "LockException" in bare.stdout + bare.stderr
    output = first.communicate(timeout=patience)[0]
    assert first.returncode == 0, output
    assert (untrained / WEIGHTS).read_bytes() == (finished / WEIGHTS).read_bytes()


def test_read_only_results_stop_at_once_and_stay_as_they_are(untrained):
    results = untrained / "results"
    before = sorted(results.rglob("*"))
    with mounted(results, "--bind", str(results)):
        remount(results, "bind,ro")
        code, output = run(untrained, WEIGHTS)
    assert code == 1
    assert output.startswith("genaccel: [Errno 30] Read-only file system: 'results/tiny'; make it writable")
    assert len(output.splitlines()) == 1
    assert sorted(results.rglob("*")) == before


def test_a_full_disk_stops_with_the_file_and_with_room_training_goes_on(untrained, finished):
    results = untrained / "results"
    kept = results.rename(untrained / "kept")
    results.mkdir()
    with mounted(results, "-t", "tmpfs", "-o", "size=64m", "tmpfs"):
        shutil.copytree(kept, results, symlinks=True, copy_function=shutil.copy2, dirs_exist_ok=True)
        used = shutil.disk_usage(results).used
        remount(results, f"size={used // 2**20 + 16}m")
        code, output = run(untrained, WEIGHTS)
        assert code != 0
        assert "train: [Errno 28] No space left on device: 'results/tiny/train/tiny/checkpoints/" in output
        assert "make room there and run again" in output
        assert not (untrained / WEIGHTS).exists()
        remount(results, f"size={used // 2**20 + 100}m")
        code, output = run(untrained, WEIGHTS)
        assert code == 0, output
        assert "goes on from step" in (untrained / "logs/tiny/train/tiny.log").read_text()
        assert (untrained / WEIGHTS).read_bytes() == (finished / WEIGHTS).read_bytes()


def date(folder: Path, days: float) -> None:
    """Dates a folder and all in it some days from now."""
    when = time.time() + days * 86400
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (when, when))


@pytest.fixture
def dated(finished) -> Iterator[Path]:
    """The finished study's results, which get their dates back."""
    results = finished / "results/tiny"
    dates = {path: path.stat().st_mtime_ns for path in (results, *results.rglob("*"))}
    yield results
    for path, when in dates.items():
        os.utime(path, ns=(when, when))


@pytest.mark.parametrize(("folder", "runs"), [("", set()), ("sample", {"sample_volumes", "metrics_score"})])
def test_what_is_older_than_its_inputs_alone_runs_again(dated, needed, folder, runs):
    date(dated / folder, -999)
    found = needed()
    assert runs <= found
    assert not found & {"data_simulate", "data_prepare", "train_model"}


def test_inputs_of_the_future_stop_before_anything_runs_until_they_are_dated_anew(study, snakemake):
    weights = study / WEIGHTS
    os.utime(weights, (time.time() + 86400,) * 2)
    sample = "results/tiny/sample/tiny/ddim-3-fp32_strict"
    done = snakemake(study, "--configfile", TINY, "--", sample, check=False)
    assert done.returncode != 0
    assert f"{WEIGHTS} is dated" in done.stderr
    assert "Traceback" not in done.stderr
    assert (study / sample / "index.json").is_file()
    remedy = done.stderr[done.stderr.index("find results") :].splitlines()[0]
    subprocess.run(remedy, shell=True, cwd=study, check=True)
    # Its users would now run again; whoever knows that nothing changed spares them that.
    snakemake(study, "--configfile", TINY, "--touch", "--", sample)
    assert "Nothing to be done" in snakemake(study, "--configfile", TINY, "-n", "--", sample).stdout
