"""Feature networks for FID-3D: one module each, named as in the config, holding a function of that name.

The function takes a ``torch.device`` and returns a ``FeatureNetwork``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from genaccel.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

FEATURES = Registry("feature network", __name__, __file__)


class FeatureNetwork(Protocol):
    """What FID-3D sees volumes through.

    Attributes:
        name: as in the registry.
        dimension: d, of a volume's features.
        sha256: of the file of weights.
    """

    name: str
    dimension: int
    sha256: str

    def __call__(self, volumes: Tensor) -> Tensor:
        """(B, 1, D, H, W), float32 in [-1, 1], axes pointing R, A, S, to (B, d)."""
