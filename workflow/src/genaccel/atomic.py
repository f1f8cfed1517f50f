"""Outputs that appear whole or not at all, each from one process at a time."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

NO_LOCKS = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK}
"""What file systems without locks answer, such as Lustre without its option `flock`."""


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a name beside ``path`` to write; renamed to ``path`` on success, removed on error.

    The temporary name keeps every suffix (``x.nii.gz``), since writers choose their format by it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
        with _refusals_named(path):
            yield partial
            with open(partial, "rb") as written:
                os.fsync(written.fileno())
            # Some writers make private files; colleagues share results as the umask says.
            os.chmod(partial, 0o666 & ~_umask())
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: str | os.PathLike[str], key: str | None = None) -> Iterator[Path]:
    """Yields a folder beside ``path`` to fill; renamed to ``path`` on success.

    A second process that would fill it waits until the first has ended: a job outlives a killed Snakemake, and the next
    Snakemake starts it once more.

    Args:
        path: the folder that appears; an older one is replaced.
        key: hash of everything that decides the contents. With it the unfinished folder outlives a
            killed job and the next one with the same key finds what was already written there; the
            caller skips those files. Folders of other keys are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(path.with_name(f".lock-{path.name}"), f"writes {path}"):
        yield from _filled(path, key)


def _filled(path: Path, key: str | None) -> Iterator[Path]:
    partial = path.with_name(f".partial-{path.name}-{key[:16] if key else os.getpid()}")
    # A key or a process's number, and no more: `.partial-ddim-10-bf16-x-<key>` is that of a neighbour, perhaps at work.
    own = re.compile(re.escape(f".partial-{path.name}-") + "[^-]+")
    for other in [entry for entry in path.parent.iterdir() if own.fullmatch(entry.name)]:
        if key is None or other != partial:
            shutil.rmtree(other)
    partial.mkdir(exist_ok=True)
    try:
        yield partial
    except BaseException:
        if key is None:
            shutil.rmtree(partial, ignore_errors=True)
        raise
    if path.exists():
        shutil.rmtree(path)
    os.replace(partial, path)


@contextmanager
def one_at_a_time(lock: Path, does: str) -> Iterator[None]:
    """Waits until no other process holds the lock, which lasts as long as its holder, however that ends.

    Args:
        lock: a file; it is there while it is held. Its folder may be shared by several machines.
        does: what the other process does, for the message that says so.
    """
    while True:
        with open(lock, "w") as file:
            try:
                _wait_for(file, does)
            except OSError as error:
                # NFS, where the holder was on another machine and has removed the file.
                if error.errno == errno.ESTALE:
                    continue
                if error.errno not in NO_LOCKS:
                    raise
                print(f"the file system of {lock.parent} keeps no locks: see to it that one job at a time {does}")
            # Its holder removes the file: one that was waited for may be gone, and another in its place.
            if not _is_same(file, lock):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def _wait_for(file: IO[str], does: str) -> None:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        print(f"another process {does}; waiting until it ends", flush=True)
        fcntl.lockf(file, fcntl.LOCK_EX)


def _is_same(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):
            raise
        return False


@contextmanager
def _refusals_named(path: Path) -> Iterator[None]:
    """Makes an ``OSError`` that names the file of whatever a writer raises where the file system takes no more.

    PyTorch and safetensors have errors of their own for a full disk, and Python's does not say where.
    """
    try:
        yield
    except OSError as error:
        if error.errno and error.filename is None:
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise
    except (ValueError, KeyError):
        raise
    except Exception as error:
        # Before what was written is removed: while it is there, there is no room for more.
        probe = path.with_name(f".probe-{os.getpid()}")
        try:
            probe.write_bytes(bytes(2**16))
        except OSError as refusal:
            raise OSError(refusal.errno, refusal.strerror, str(path)) from error
        finally:
            with suppress(OSError):
                probe.unlink()
        raise


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
