"""Reads NIfTI volumes and refuses whatever would go wrong silently later."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from genaccel.data.faults import InputFault
from genaccel.data.nifti_file import parse_nifti, read_bytes
from genaccel.data.voxels import Stored, check_finite, check_no_sentinel, whole_numbers

# Cosine between two voxel axes; rounding of a float32 header stays below 1e-6, a real shear does not.
SHEAR_TOLERANCE = 1e-3
# Share of a voxel by which two affines may disagree at the volume's corners: rounding of qform against sform.
AFFINE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Volume:
    """One file's voxels and where they lie.

    Attributes:
        name: the file's name, for messages.
        array: (I, J, K) in the file's own order; floating point or integer, finite.
        affine: (4, 4), voxel indices to RAS+ millimetres; axes perpendicular.
        sha256: of the file's bytes.
        codes: of qform and sform; both 0 where the header sets neither, so that nibabel assumes LAS.
    """

    name: str
    array: NDArray
    affine: NDArray[np.float64]
    sha256: str
    codes: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.array.shape

    @property
    def spacing(self) -> tuple[float, float, float]:
        """Voxel sides in mm along the file's axes."""
        return tuple(float(f"{side:.6g}") for side in nib.affines.voxel_sizes(self.affine))

    @property
    def orientation(self) -> str:
        """Where the file's axes point, such as ``LPS``."""
        return "".join(nib.aff2axcodes(self.affine))

    @property
    def oriented(self) -> bool:
        return any(self.codes)


def read_volume(path: Path) -> Volume:
    """Loads a single-file NIfTI, scaled by its slope and intercept; trailing axes of one voxel are dropped.

    Raises:
        InputFault: no NIfTI file; cut short or damaged; not three axes; not real numbers; NaN or infinite
            voxels, also such as became an integer's extreme; an affine that is singular or sheared.
    """
    volume, stored = _read(path)
    return replace(volume, array=stored.scaled)


def read_labels(path: Path) -> Volume:
    """``read_volume`` of a label map; ``array`` is int32.

    Raises:
        InputFault: as for ``read_volume``; also where values are no whole numbers.
    """
    volume, stored = _read(path)
    return replace(volume, array=whole_numbers(path.name, stored))


def check_same_grid(image: Volume, mask: Volume) -> None:
    """Raises InputFault where the two differ in shape or, at any corner, by more than 0.05 voxels in place."""
    remedy = "Resample one onto the other's grid, or pair the files that belong together."
    if image.shape != mask.shape:
        raise InputFault(f"{image.name} has shape {_by(image.shape)} but {mask.name} {_by(mask.shape)}.", remedy)
    corners = np.stack(np.meshgrid(*[(0, side - 1) for side in mask.shape], indexing="ij"), -1).reshape(-1, 3)
    apart = nib.affines.apply_affine(image.affine, corners) - nib.affines.apply_affine(mask.affine, corners)
    distance = float(np.linalg.norm(apart, axis=1).max())
    if distance > AFFINE_TOLERANCE * min(mask.spacing):
        raise InputFault(
            f"{image.name} ({image.orientation}) and {mask.name} ({mask.orientation}) have different affines: "
            f"their voxels lie up to {distance:.3g} mm apart.",
            remedy,
        )


def _read(path: Path) -> tuple[Volume, Stored]:
    """The volume, its array as the file stores it, and how that is scaled."""
    name, content = path.name, read_bytes(path)
    image = parse_nifti(name, content)
    kind = image.get_data_dtype()
    if kind.names or kind.kind not in "iuf":
        stores = "colours" if kind.names else f"{kind} numbers"
        raise InputFault(f"{name} stores {stores}, not one real number a voxel.", "Convert it to a grey-scale volume.")
    numbers = _three_axes(name, image.dataobj.get_unscaled())
    slope, inter = image.dataobj.slope, image.dataobj.inter
    scaled = numbers if (slope, inter) == (1, 0) else _three_axes(name, np.asarray(image.dataobj))
    stored = Stored(numbers, scaled, slope, inter)
    check_finite(name, stored.scaled)
    check_no_sentinel(name, stored.numbers)
    affine = np.asarray(image.affine, dtype=np.float64)
    _check_affine(name, affine)
    codes = int(image.header["qform_code"]), int(image.header["sform_code"])
    return Volume(name, numbers, affine, hashlib.sha256(content).hexdigest(), codes), stored


def _three_axes(name: str, array: NDArray) -> NDArray:
    shape = array.shape
    while array.ndim > 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != 3:
        raise InputFault(
            f"{name} has shape {_by(shape)}, not three axes.",
            "Give one volume a file: split a series into its volumes.",
        )
    return array


def _check_affine(name: str, affine: NDArray[np.float64]) -> None:
    axes = affine[:3, :3]
    sides = np.linalg.norm(axes, axis=0)
    if not np.isfinite(affine).all() or sides.min() < 1e-6 or np.linalg.matrix_rank(axes / sides) < 3:
        raise InputFault(
            f"{name} has an affine that gives its voxels no volume: {np.round(axes, 4).tolist()}.",
            "Mend the header's sform or qform.",
        )
    cosines = (axes / sides).T @ (axes / sides)
    shear = float(np.abs(cosines - np.eye(3)).max())
    if shear > SHEAR_TOLERANCE:
        raise InputFault(
            f"{name} has a sheared affine: two of its voxel axes stand at {np.degrees(np.arccos(shear)):.2f} degrees, "
            "not 90.",
            "Resample image and mask onto a grid with perpendicular axes.",
        )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
