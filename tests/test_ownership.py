"""Which devices a job may use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from genaccel.ownership import check_devices, check_driver, own_devices
from genaccel.spec import SpecError

TAKE = (
    "import os, sys, time\nfrom genaccel.ownership import own_devices\n"
    "own_devices('cuda', {count})\nprint(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n{then}\n"
)


@pytest.fixture
def take(tmp_path):
    """Starts a process that takes devices of a machine with two, and says which."""
    started = []

    def start(count: int, then: str = "time.sleep(60)") -> subprocess.Popen[str]:
        env = {**os.environ, "GENACCEL_DEVICES": "own", "GENACCEL_LOCKS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "0,1"}
        command = [sys.executable, "-c", TAKE.format(count=count, then=then)]
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_two_jobs_get_different_devices(take):
    assert {take(1).stdout.readline().strip() for _ in range(2)} == {"0", "1"}


def test_a_job_waits_for_a_device_and_says_who_has_it(take):
    first = take(2)
    assert first.stdout.readline() == "0,1\n"
    second = take(1)
    assert f"waiting for 1 of the GPUs 0, 1; taken: 0 by process {first.pid}, 1 by" in second.stderr.readline()
    first.send_signal(signal.SIGKILL)
    assert second.stdout.readline() in ("0\n", "1\n")


def test_a_device_stays_taken_while_a_killed_jobs_child_uses_it(take):
    # As a rank does that outlives torchrun: it shares its parent's devices.
    child = "from genaccel.ownership import own_devices; own_devices('cuda', 2); print('up', flush=True)"
    child += "; import time; time.sleep(60)"
    first = take(2, f"import subprocess; subprocess.run([sys.executable, '-c', {child!r}])")
    assert [first.stdout.readline() for _ in range(2)] == ["0,1\n", "up\n"]
    held = take(1)
    assert "waiting" in held.stderr.readline()
    os.kill(first.pid, signal.SIGKILL)
    time.sleep(1.5)
    assert held.poll() is None
    os.killpg(first.pid, signal.SIGKILL)
    assert held.stdout.readline() in ("0\n", "1\n")


def test_a_device_that_is_named_twice_is_one(monkeypatch, tmp_path):
    monkeypatch.setenv("GENACCEL_DEVICES", "own")
    monkeypatch.setenv("GENACCEL_LOCKS", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0, 1,0")
    with pytest.raises(SpecError, match=r"this machine offers 2 \(0, 1\)"):
        own_devices("cuda", 3)


def test_more_devices_than_the_machine_has_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("GENACCEL_DEVICES", "own")
    monkeypatch.setenv("GENACCEL_LOCKS", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(SpecError, match="3 GPUs were asked for, and this machine offers 2"):
        own_devices("cuda", 3)


@pytest.mark.parametrize(("kind", "state"), [("cpu", "own"), ("cuda", "assigned"), ("cuda", None)])
def test_nothing_is_taken_where_no_profile_asks_for_it(monkeypatch, tmp_path, kind, state):
    monkeypatch.setenv("GENACCEL_LOCKS", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.delenv("GENACCEL_DEVICES", raising=False)
    if state:
        monkeypatch.setenv("GENACCEL_DEVICES", state)
    own_devices(kind, 1)
    assert list(tmp_path.iterdir()) == []
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(("visible", "remedy"), [(8, "does not confine jobs"), (0, "nvidia-smi")])
def test_a_job_that_sees_other_devices_than_it_asked_for_says_so(monkeypatch, visible, remedy):
    check_devices(visible, 1)
    monkeypatch.setenv("GENACCEL_DEVICES", "assigned")
    check_devices(1, 1)
    with pytest.raises(SpecError, match=rf"asked for 1 device\(s\) and sees {visible} .*{remedy}"):
        check_devices(visible, 1)


def test_a_job_with_a_device_that_pytorch_does_not_see_stops_instead_of_running_on_the_cpu(monkeypatch):
    monkeypatch.setenv("GENACCEL_DEVICES", "assigned")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    check_driver(1)
    with pytest.raises(SpecError, match=r"was given the GPU\(s\) 3 on .*, and PyTorch sees none"):
        check_driver(0)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    check_driver(0)
