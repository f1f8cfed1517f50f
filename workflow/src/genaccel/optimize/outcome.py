"""A measurement that ended without a value, for a reason that is a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Failed:
    """Out of device memory, or not there on this device."""

    status: Literal["oom", "unsupported"]
    reason: str
