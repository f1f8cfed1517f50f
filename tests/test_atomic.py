"""Outputs that appear whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys

import pytest

from genaccel.atomic import atomic_directory, atomic_file, file_sha256


def killed(outcome, name="a"):
    """Writes something through an atomic context and then dies."""
    with pytest.raises(RuntimeError), outcome as partial:
        _write_and_die(partial / name if partial.is_dir() else partial)


def _write_and_die(path):
    path.write_text("half")
    raise RuntimeError


def test_a_file_appears_whole_under_its_name_only(tmp_path):
    with atomic_file(tmp_path / "deep" / "x.nii.gz") as partial:
        partial.write_text("new")
        assert partial.name.endswith(".nii.gz")
        assert not (tmp_path / "deep" / "x.nii.gz").exists()
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["x.nii.gz"]


def test_a_file_is_as_public_as_the_umask_says(tmp_path):
    with atomic_file(tmp_path / "x") as partial:
        partial.touch(mode=0o600)
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o666 & ~umask


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    killed(atomic_file(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_replaces_the_old_one_whole(tmp_path):
    for name in ("a", "b"):
        with atomic_directory(tmp_path / "out") as folder:
            (folder / name).touch()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b"]


def test_without_a_key_an_error_leaves_nothing(tmp_path):
    killed(atomic_directory(tmp_path / "out"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("second", "kept"), [("k1", True), ("k2", False)])
def test_an_unfinished_folder_is_gone_on_with_under_its_key_alone(tmp_path, second, kept):
    killed(atomic_directory(tmp_path / "out", "k1"))
    with atomic_directory(tmp_path / "out", second) as folder:
        assert (folder / "a").exists() is kept
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_the_unfinished_folder_of_a_neighbour_with_a_longer_name_stays(tmp_path):
    with (
        atomic_directory(tmp_path / "ddim-10-bf16-x", "k1") as neighbour,
        atomic_directory(tmp_path / "ddim-10-bf16", "k2"),
    ):
        assert neighbour.is_dir()


def test_a_second_process_waits_until_the_first_has_filled_the_folder(tmp_path):
    """As an orphaned job's successor does; the first's unfinished folder is not taken from it."""
    program = (
        "import sys\nfrom genaccel.atomic import atomic_directory\n"
        f"with atomic_directory({str(tmp_path / 'out')!r}) as folder: (folder / 'second').touch()"
    )
    with atomic_directory(tmp_path / "out") as folder:
        (folder / "first").touch()
        second = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert f"another process writes {tmp_path / 'out'}; waiting until it ends" in second.stdout.readline()
        assert [p.name for p in folder.iterdir()] == ["first"]
    assert second.wait(timeout=1800) == 0
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["out", "out/second"]


def test_a_killed_process_keeps_nobody_waiting(tmp_path):
    program = (
        "import os\nfrom genaccel.atomic import atomic_directory\n"
        f"with atomic_directory({str(tmp_path / 'out')!r}): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program], check=False)
    with atomic_directory(tmp_path / "out"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_lock_that_another_machine_removed_is_taken_anew(tmp_path, monkeypatch):
    """As NFS says it."""
    answers = [OSError(errno.ESTALE, "Stale file handle"), None]

    def lockf(file, operation):
        if answer := answers.pop(0):
            raise answer

    monkeypatch.setattr("fcntl.lockf", lockf)
    with atomic_directory(tmp_path / "out"):
        pass
    assert not answers


def test_where_there_are_no_locks_work_goes_on_and_says_so(tmp_path, monkeypatch, capsys):
    def lockf(file, operation):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.lockf", lockf)
    with atomic_directory(tmp_path / "out"):
        pass
    assert f"the file system of {tmp_path} keeps no locks" in capsys.readouterr().out


def test_the_hash_is_sha256_of_the_bytes(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert file_sha256(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
