"""Feature networks for FID-3D, KID and MMD: one module each, named as in the config, holding a function of that name.

The function takes ``device``, a ``torch.device``, and returns a ``FeatureNetwork``. One that does not come inside a
package also takes ``weights``, the user's file, and ``weights_sha256``, the
hash that it must have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from genaccel.registry import Registry
from genaccel.spec import SpecError

if TYPE_CHECKING:
    import numpy
    import torch
    from torch import Tensor

    from genaccel.metrics.spec import FeatureSpec

FEATURES = Registry("feature network", __name__, __file__)


class FeatureNetwork(Protocol):
    """What the distances between sets see volumes through.

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


def needs_weights(network: str) -> bool:
    """Whether the user brings this network's file; read from its source, without torch."""
    return "weights" in FEATURES.options(network)


def feature_network(settings: FeatureSpec, device: torch.device) -> FeatureNetwork:
    """Opens the network of ``metrics.features``.

    Raises:
        SpecError: its file is missing, another one than ``weights_sha256`` says, or does not fit.
    """
    file = {"weights": settings.weights, "weights_sha256": settings.weights_sha256}
    return FEATURES[settings.network](device=device, **(file if needs_weights(settings.network) else {}))


def volume_features(network: FeatureNetwork, volume: Tensor, where: str) -> numpy.ndarray:
    """Features of one volume by itself: (R, A, S) in [-1, 1] to (d,), float64.

    Raises:
        SpecError: they are not finite; ``where`` names the volume.
    """
    features = network(volume[None, None])[0].double()
    if bad := int((~features.isfinite()).sum()):
        raise SpecError(
            f"{where}: {bad} of its {len(features)} features by {network.name} are not finite; look at the volume, "
            "or use another network (metrics.features.network)"
        )
    return features.cpu().numpy()
