from __future__ import annotations

from habana_frameworks import EVENTS

EVENTS.append("hccl loaded")
