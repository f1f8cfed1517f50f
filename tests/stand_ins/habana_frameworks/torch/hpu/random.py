from __future__ import annotations

from habana_frameworks import EVENTS


def manual_seed_all(seed: int) -> None:
    EVENTS.append(f"seed {seed}")
