"""The MNI152 template inside the nilearn package, on the simulation's grid."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nibabel.affines import from_matvec
from numpy.typing import NDArray

from genaccel.data.faults import InputFault
from genaccel.data.grid import plan_grid, to_grid
from genaccel.data.nifti import Volume, read_volume

FILE = "mni_icbm152_{map}_tal_nlin_sym_09a_converted.nii.gz"
# Room in mm for the warp around the brain.
MARGIN = 16


@dataclass(frozen=True)
class Template:
    """Tissue maps on a grid with cubic voxels, axes R, A, S.

    Attributes:
        maps: (5, X, Y, Z) float32: brain, cerebrospinal fluid, grey matter, white matter, each a share of
            the voxel in 0..1; then detail, what T1 shows beyond these three, in units of its full range.
        affine: (4, 4), voxel indices to MNI152 mm.
        spacing: voxel side in mm.
    """

    maps: NDArray[np.float32]
    affine: NDArray[np.float64]
    spacing: float

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.maps.shape[1:]


def load_template(spacing: float) -> Template:
    """Reads T1, grey and white matter (1 mm) and brings them to ``spacing`` mm.

    Source: Fonov et al., Unbiased average age-appropriate brain templates, NeuroImage 54, 2011.

    Raises:
        InputFault: nilearn is not installed, or has no such template.
    """
    t1, gm, wm = (read_volume(template_file(name)) for name in ("t1", "gm", "wm"))
    # T1 is cut out along the brain, which the tissue maps exceed a little.
    inside = t1.array > 0
    box = _around(inside)
    extent = [window.stop - window.start for window in box]
    affine = t1.affine @ from_matvec(np.eye(3), [window.start for window in box])
    shape = tuple(math.ceil(side / spacing) for side in extent)
    grid = plan_grid(tuple(extent), affine, shape, "resample", spacing)

    def on_grid(array: NDArray) -> NDArray[np.float32]:
        return to_grid(array[box].astype(np.float32), grid, order=1)

    brain = on_grid(inside)
    intensity, grey, white = (on_grid(np.where(inside, _unit(volume), 0)) for volume in (t1, gm, wm))
    fluid = np.clip(brain - grey - white, 0, None)
    tissues = np.stack([fluid, grey, white])
    means, *_ = np.linalg.lstsq(tissues.reshape(3, -1).T, intensity.ravel(), rcond=None)
    detail = intensity - np.tensordot(means, tissues, 1)
    maps = np.stack([brain, *tissues, detail]).astype(np.float32)
    return Template(maps, np.array(grid.target_affine), spacing)


def template_file(name: str) -> Path:
    """Finds a map without importing nilearn, which would take seconds."""
    package = importlib.util.find_spec("nilearn")
    if package is None or not package.submodule_search_locations:
        raise InputFault("simulated subjects need the MNI152 template inside the package nilearn.", "Install nilearn.")
    path = Path(package.submodule_search_locations[0]) / "datasets" / "data" / FILE.format(map=name)
    if not path.is_file():
        raise InputFault(f"nilearn has no template {path}.", "Install nilearn 0.13.")
    return path


def _around(inside: NDArray[np.bool_]) -> tuple[slice, ...]:
    """The brain's bounding box with a margin, as far as the template reaches; 1 voxel is 1 mm."""
    places = np.nonzero(inside)
    return tuple(
        slice(max(int(place.min()) - MARGIN, 0), min(int(place.max()) + MARGIN + 1, side))
        for place, side in zip(places, inside.shape, strict=True)
    )


def _unit(volume: Volume) -> NDArray[np.float32]:
    return volume.array.astype(np.float32) / volume.array.max()
