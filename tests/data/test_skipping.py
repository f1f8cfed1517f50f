"""`on_error: skip`: who is left out, what it says, and what always stops."""

from __future__ import annotations

import errno
import re
import subprocess
import sys

import numpy as np
import pytest

from genaccel.data import pool, prepare
from genaccel.data.faults import InputFault
from genaccel.data.faulty import SKIP
from genaccel.data.samples import read_samples


def spoil(study, *subjects: str) -> None:
    for subject in subjects:
        study.write("t1", np.full_like(study.image, 3), subject=subject)


CONSTANT = "t1.nii.gz is constant: all 504 voxels are 3."
REMEDY = "Give the image itself, or leave it out."


def test_a_missing_modality_leaves_out_its_subject(study):
    study.rows["b"][2] = ""
    study.path("t1", "c").unlink()
    manifest = study.run("skip")
    assert [subject.subject for subject in manifest.subjects] == ["a", "d"]
    assert [(entry.subject, entry.reason) for entry in manifest.skipped] == [
        ("b", "lacks 1 file: t1: no file given. Mend the sample table or the folder."),
        ("c", "lacks 1 file: t1: c/t1.nii.gz. Mend the sample table or the folder."),
    ]


def test_a_file_that_goes_while_the_stage_runs_leaves_out_its_subject(study, monkeypatch):
    def vanish(tasks, processes):
        study.path("t1").unlink()
        return pool.prepare_all(tasks, processes)

    monkeypatch.setattr("genaccel.data.__main__.prepare_all", vanish)
    (entry,) = study.run("skip").skipped
    assert entry.reason.startswith("t1.nii.gz cannot be read (No such file or directory: ")


def test_without_a_fault_skipping_changes_nothing(study):
    path = study.folder / "out" / "manifest.json"
    study.run("stop")
    before = path.read_bytes()
    assert study.run("skip").skipped == ()
    assert path.read_bytes() == before


def test_who_stays_is_prepared_the_same(study):
    whole = study.run()
    spoil(study, "b")
    left = study.run("skip")
    assert left.subjects == tuple(subject for subject in whole.subjects if subject.subject != "b")


def test_splits_do_not_depend_on_who_is_left_out(study):
    for row in study.rows.values():
        row[3] = ""
    split = {"train": 0.5, "test": 0.5}
    whole = {subject.subject: subject.split for subject in study.run(split=split).subjects}
    assert len(set(whole.values())) == 2
    spoil(study, "b")
    study.path("mask", "c" if whole["c"] != whole["b"] else "a").unlink()
    left = {subject.subject: subject.split for subject in study.run("skip", split=split).subjects}
    assert len(left) == 2
    assert left.items() <= whole.items()


def test_the_command_says_who_is_left_out_and_succeeds(study):
    spoil(study, "b")
    command = [sys.executable, "-m", "genaccel.data", *study.arguments("skip")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert f"data: leaves out b: {CONSTANT} {REMEDY}\n" in done.stderr
    assert "data: leaves out 1 of 4 subjects\n" in done.stderr


def test_several_faults_stop_with_all_of_them(study):
    spoil(study, "b", "d")
    with pytest.raises(InputFault) as raised:
        study.run()
    assert str(raised.value) == (
        "2 of 4 subjects cannot be used:\n"
        f"      b {CONSTANT}\n      {REMEDY}\n"
        f"      d {CONSTANT}\n      {REMEDY}\n"
        f"      Mend these files, or take the subjects out of the sample table. {SKIP}"
    )


def test_when_no_subject_is_left_the_stage_stops(study):
    spoil(study, "a", "b", "c")
    study.path("t1", "d").unlink()
    with pytest.raises(InputFault) as raised:
        study.run("skip")
    assert str(raised.value) == (
        "4 of 4 subjects cannot be used:\n"
        + "".join(f"      {name} {CONSTANT}\n      {REMEDY}\n" for name in "abc")
        + "      d lacks 1 file: t1: d/t1.nii.gz.\n      Mend the sample table or the folder.\n"
        "      Nothing is left to go on with: mend these files."
    )
    assert not (study.folder / "out" / "volumes").exists()


@pytest.mark.parametrize(("split", "members"), [("train", "ab"), ("test", "cd")])
def test_a_split_that_skipping_empties_stops_the_stage(study, split, members):
    spoil(study, *members)
    with pytest.raises(InputFault) as raised:
        study.run("skip", needed=["train", "test"])
    assert str(raised.value) == (
        f"the split `{split}` is empty, since all its subjects are left out: {', '.join(members)}.\n"
        "      Mend one of them, or give the split others: `data.<name>.split`, or the table's column `split`."
    )
    assert not (study.folder / "out" / "manifest.json").exists()


def test_an_emptied_split_that_no_stage_needs_is_only_said(study, capsys):
    study.rows["b"][3] = "validation"
    spoil(study, "b")
    assert len(study.run("skip", needed=["train", "test"]).subjects) == 3
    assert "data: the split `validation` is empty, since all its subjects are left out: b.\n" in capsys.readouterr().err


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_a_full_disk_is_no_fault_of_a_subject(study, on_error, monkeypatch):
    def full(tensors, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(prepare, "save_file", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        study.run(on_error)
    assert raised.value.errno == errno.ENOSPC
    assert not any((study.folder / "out").rglob("*"))


def test_an_error_in_another_process_stays_what_it_is(study, monkeypatch):
    monkeypatch.setattr(pool, "BYTES_A_PROCESS", 1)
    tasks = [(sample, "train", None, study.folder, "") for sample in read_samples(study.table, ["t1"])]
    with pytest.raises(AttributeError) as raised:
        pool.prepare_all(tasks, 2)
    (note,) = raised.value.__notes__
    assert re.fullmatch("data: this happened while subject [abcd] was prepared", note)


@pytest.mark.parametrize("error", [MemoryError("too large"), OSError(5, "Input/output error"), RuntimeError("a bug")])
def test_what_is_no_fault_of_a_subject_stops_with_the_error_itself(study, monkeypatch, error):
    def fail(path):
        raise error

    monkeypatch.setattr("pathlib.Path.read_bytes", fail)
    with pytest.raises(type(error)) as raised:
        study.run("skip")
    assert raised.value is error
    assert error.__notes__ == ["data: this happened while subject a was prepared"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("OSError(5, 'Input/output error')", "Traceback (most recent call last)"),
        ("OSError(28, 'No space left on device')", "data: [Errno 28] No space left on device; make room there"),
    ],
)
def test_an_error_that_is_not_the_subjects_fails_the_command(study, error, said):
    study.write("t1", study.image)
    (study.folder / "out").mkdir()
    code = (
        "import sys; from genaccel.command import stage_errors; from genaccel.data import prepare, __main__ as stage\n"
        f"def full(*_): raise {error}\n"
        "prepare.save_file = full\n"
        "with stage_errors('data'): stage.main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *study.arguments("skip")], capture_output=True, text=True)
    assert done.returncode == 1
    assert said in done.stderr
    assert "data: this happened while subject a was prepared" in done.stderr
    assert not (study.folder / "out" / "manifest.json").exists()
