"""Outputs that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a name beside ``path`` to write; renamed to ``path`` on success, removed on error.

    The temporary name keeps every suffix (``x.nii.gz``), since writers choose their format by it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial-{os.getpid()}-{path.name}")
    try:
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

    Args:
        path: the folder that appears; an older one is replaced.
        key: hash of everything that decides the contents. With it the unfinished folder outlives a
            killed job and the next one with the same key finds what was already written there; the
            caller skips those files. Folders of other keys are removed.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".partial-{path.name}-{key[:16] if key else os.getpid()}")
    for other in path.parent.glob(f".partial-{path.name}-*"):
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


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    umask = os.umask(0o022)
    os.umask(umask)
    return umask


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
