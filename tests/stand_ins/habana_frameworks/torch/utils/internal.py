from __future__ import annotations

import habana_frameworks


def is_lazy() -> bool:
    return habana_frameworks.LAZY
