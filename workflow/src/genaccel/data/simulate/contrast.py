"""From tissues to intensities: what each modality makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genaccel.data.simulate.fields import smooth_field


@dataclass(frozen=True)
class Contrast:
    """Intensities in 0..1 of fluid, grey and white matter; of a tumour's core, ring and oedema; and how
    much of the template's T1 detail shows, and with which sign."""

    tissues: tuple[float, float, float]
    tumour: tuple[float, float, float]
    detail: float


T1 = Contrast((0.28, 0.62, 0.88), (0.30, 0.58, 0.50), 1.0)
T1CE = Contrast((0.28, 0.62, 0.88), (0.30, 1.10, 0.50), 1.0)
T2 = Contrast((0.95, 0.60, 0.42), (0.90, 0.65, 0.82), -0.5)
FLAIR = Contrast((0.18, 0.66, 0.52), (0.40, 0.75, 0.95), -0.3)
CONTRASTS = {"t1": T1, "t1n": T1, "t1ce": T1CE, "t1c": T1CE, "t2": T2, "t2w": T2, "flair": FLAIR, "t2f": FLAIR}


def contrast_of(modality: str) -> Contrast:
    """A modality by its usual name; any other looks like T1."""
    return CONTRASTS.get(modality.lower(), T1)


def render(
    rng: np.random.Generator,
    contrast: Contrast,
    maps: NDArray[np.float32],
    brain: NDArray[np.bool_],
    rank: NDArray[np.float64],
    spacing: float,
) -> NDArray[np.int16]:
    """Paints one image: tissue contrast, tumour, bias field, gain and noise, each drawn anew.

    Args:
        maps: (5, X, Y, Z), as in ``Template.maps``.
        brain: outside of it the image is exactly 0, as in skull-stripped files.
        rank: of ``tumour_rank``.
        spacing: voxel side in mm.

    Returns:
        (X, Y, Z), arbitrary units of about 0..1500, at least 1 inside the brain.
    """
    _, *tissues, detail = maps
    means = np.array(contrast.tissues) * (1 + 0.05 * rng.standard_normal(3))
    image = np.tensordot(means, np.stack(tissues), 1) + contrast.detail * detail
    zone = np.minimum((rank * 3).astype(int), 2)
    tumour = np.array(contrast.tumour) * (1 + 0.05 * rng.standard_normal(3))
    # A fifth of the tissue underneath keeps some texture in the tumour.
    image = np.where(rank < 1, 0.8 * tumour[zone] + 0.2 * image, image)
    image *= np.exp(0.12 * smooth_field(rng, brain.shape, spacing, lattice=90.0))
    image += 0.02 * rng.standard_normal(brain.shape)
    gain = 1000 * np.exp(0.15 * rng.standard_normal())
    return np.where(brain, np.clip(np.rint(gain * image), 1, 32767), 0).astype(np.int16)
