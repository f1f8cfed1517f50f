"""Fixtures that tests of several stages share."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Threads that wait for others spin by default, which on cores that several tests share takes more CPU time than the
# work. Set before anything imports torch, and inherited by what tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def copy_project(root) -> Callable[[Path], Path]:
    """Copies the files that a clone has and a run needs: ``copy_project(target)`` makes the folder and gives it."""

    def copy(target: Path) -> Path:
        (target / "tests").mkdir(parents=True)
        for name in ("Snakefile", "workflow", "config", "profiles", "envs", "tests/config"):
            source = root / name
            if source.is_dir():
                shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy2(source, target / name)
        return target

    return copy


@pytest.fixture(scope="session")
def sign():
    """Puts the hashes of the volumes that a test wrote into its manifest: ``sign(manifest_path)``."""

    def write(path: Path) -> None:
        content = json.loads(path.read_text())
        for subject in content["subjects"]:
            subject["volume_sha256"] = hashlib.sha256((path.parent / subject["volume"]).read_bytes()).hexdigest()
        path.write_text(json.dumps(content))

    return write


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of real MRI: brats/ and whole_head/. A test that needs it skips where it is absent, but not in CI."""
    named = os.environ.get("GENACCEL_TEST_DATA", "")
    folder = Path(named)
    if named and (folder / "brats").is_dir() and (folder / "whole_head").is_dir():
        return folder
    reason = f"GENACCEL_TEST_DATA ({named!r}) names no folder with brats/ and whole_head/"
    if os.environ.get("GENACCEL_REQUIRE_REAL_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)
