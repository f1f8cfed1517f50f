"""How far outputs are off."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor


def relative_errors(found: Mapping[int, Tensor], reference: Mapping[int, Tensor]) -> dict[int, float]:
    """|found - reference| / |reference| in the L2 norm over all volumes, in FP64, by step."""
    return {step: relative_error(found[step], reference[step]) for step in found}


def relative_error(found: Tensor, reference: Tensor) -> float:
    """Of one output; both of one shape, on one device."""
    reference = reference.double()
    return float((found.double() - reference).norm() / reference.norm())
