"""Checkpoints: their key, their loss, their damage."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch

from genaccel.spec import SpecError
from genaccel.train.checkpoint import Checkpoints, parts_of_key


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path, {"settings": "s", "data": "d", "code": "c"})


def test_the_newest_state_comes_back(checkpoints):
    for step in (2, 4, 6):
        checkpoints.save(step, {"step": step, "w": torch.tensor([float(step)])})
    state, key = checkpoints.load(at_most=100)
    assert (state["step"], state["w"].item(), key) == (6, 6.0, checkpoints.key)
    assert len(list(checkpoints.folder.glob("*.pt"))) == 2


def test_a_shorter_training_takes_no_later_state(checkpoints):
    checkpoints.save(2, {"step": 2})
    checkpoints.save(4, {"step": 4})
    assert checkpoints.load(at_most=3)[0]["step"] == 2
    assert checkpoints.load(at_most=1) is None


def flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    return bytes(content)


@pytest.mark.parametrize("damage", [lambda path: b"", lambda path: b"PK\x03\x04 no archive", flipped])
def test_a_damaged_state_falls_back_to_the_one_before(checkpoints, damage, capsys):
    checkpoints.save(2, {"step": 2})
    newest = checkpoints.save(4, {"step": 4})
    newest.write_bytes(damage(newest))
    assert checkpoints.load(at_most=9)[0]["step"] == 2
    assert "is damaged" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".pt", ".sha256"])
def test_where_the_newest_state_was_removed_the_one_before_counts(checkpoints, suffix):
    checkpoints.save(2, {"step": 2})
    checkpoints.save(4, {"step": 4}).with_suffix(suffix).unlink()
    assert checkpoints.load(at_most=9)[0]["step"] == 2


def test_new_states_outlive_unusable_ones_of_later_steps(checkpoints):
    for step in (40, 50):
        checkpoints.save(step, {"step": step}).write_bytes(b"")
    for step in (5, 10, 15):
        checkpoints.save(step, {"step": step})
    assert checkpoints.load(at_most=99)[0]["step"] == 15
    assert [path.name for path in sorted(checkpoints.folder.glob("step-*"))] == [
        f"step-{step:08d}{suffix}" for step in (10, 15) for suffix in (".pt", ".sha256")
    ]


@pytest.mark.parametrize("changed", ["data", "code", "settings"])
def test_what_changed_since_is_named(tmp_path, checkpoints, changed):
    checkpoints.save(2, {"step": 2})
    later = Checkpoints(tmp_path, checkpoints.parts | {changed: "new"})
    assert later.load(at_most=9) is None
    assert later.why_afresh() == [f"{changed} changed since checkpoint {checkpoints.key} (step-00000002)"]


def test_an_accepted_key_is_gone_on_from(tmp_path, checkpoints):
    checkpoints.save(2, {"step": 2})
    later = Checkpoints(tmp_path, checkpoints.parts | {"code": "new"})
    assert later.load(at_most=9, accept=checkpoints.key)[1] == checkpoints.key
    with pytest.raises(SpecError, match=f"no checkpoint 'abc'.*{checkpoints.key}"):
        later.load(at_most=9, accept="abc")


def test_a_finished_training_removes_what_others_left(tmp_path, checkpoints):
    checkpoints.save(2, {"step": 2})
    later = Checkpoints(tmp_path, checkpoints.parts | {"code": "new"})
    later.save(4, {"step": 4})
    later.drop_others()
    assert not checkpoints.folder.exists()
    assert later.load(at_most=9)[0]["step"] == 4


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"steps": 100}, True),
        ({"weights": "elsewhere.pt"}, True),
        ({"learning_rate": 0.5}, False),
        ({"batch": 3}, False),
        ({"seed": 7}, False),
        ({"variant": "bf16"}, False),
    ],
)
def test_the_key_changes_with_what_decides_the_course_of_training(job, change, same):
    key = parts_of_key(job(), "m", None)
    assert (parts_of_key(job(**change), "m", None) == key) is same
    assert parts_of_key(job(), "other data", None) != key
    assert parts_of_key(job(), "m", "other weights") != key


def test_a_second_process_waits_for_the_lock(checkpoints):
    program = (
        "import sys\nfrom genaccel.train.checkpoint import Checkpoints\n"
        f"with Checkpoints({str(checkpoints.root)!r}, {{}}).lock(): print('in', flush=True)"
    )
    with checkpoints.lock():
        other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert "waiting until it ends" in other.stdout.readline()
        time.sleep(0.3)
        assert other.poll() is None
    assert other.communicate(timeout=1800)[0] == "in\n"
