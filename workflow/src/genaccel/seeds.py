"""Seeds that depend on what they are for, never on the order in which they are asked for."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, *names: str | int) -> int:
    """A 63-bit seed for one use, e.g. ``derive_seed(0, "noise", subject, sample)``.

    Equal arguments give equal seeds on every machine, and different ones independent streams.
    """
    text = "\0".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
