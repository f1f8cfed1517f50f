"""Fixtures that tests of several stages share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


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
