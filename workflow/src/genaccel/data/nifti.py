"""Reads NIfTI volumes and refuses whatever would go wrong silently later."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError
from numpy.typing import NDArray

from genaccel.data.faults import InputFault, plural

# Cosine between two voxel axes; rounding of a float32 header stays below 1e-6, a real shear does not.
SHEAR_TOLERANCE = 1e-3
# Share of a voxel by which two affines may disagree at the volume's corners: rounding of qform against sform.
AFFINE_TOLERANCE = 0.05
# Labels stored as integers with a slope such as 0.99998 come back this close to whole numbers.
LABEL_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Volume:
    """One file's voxels and where they lie.

    Attributes:
        name: the file's name, for messages.
        array: (I, J, K) in the file's own order; floating point or integer, finite.
        affine: (4, 4), voxel indices to RAS+ millimetres; axes perpendicular.
        sha256: of the file's bytes.
        oriented: False where the header sets neither sform nor qform, so that nibabel assumes LAS.
    """

    name: str
    array: NDArray
    affine: NDArray[np.float64]
    sha256: str
    oriented: bool = True

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


def read_volume(path: Path) -> Volume:
    """Loads a single-file NIfTI, scaled by its slope and intercept; trailing axes of one voxel are dropped.

    Raises:
        InputFault: no NIfTI file; cut short or damaged; not three axes; not real numbers; NaN or infinite
            voxels; an affine that is singular or sheared.
    """
    content = path.read_bytes()
    image = _parse(path.name, content)
    array = _three_axes(path.name, _voxels(path.name, image))
    _check_finite(path.name, array)
    affine = np.asarray(image.affine, dtype=np.float64)
    _check_affine(path.name, affine)
    oriented = bool(image.header["sform_code"] > 0 or image.header["qform_code"] > 0)
    return Volume(path.name, array, affine, hashlib.sha256(content).hexdigest(), oriented)


def read_labels(path: Path) -> Volume:
    """``read_volume`` of a label map; ``array`` is int32.

    Raises:
        InputFault: as for ``read_volume``; also where a value is further than 1e-3 from a whole number.
    """
    volume = read_volume(path)
    # Rounding float64 keeps what float32 would merge.
    values = volume.array.astype(np.float64)
    labels = np.rint(values)
    broken = np.abs(values - labels) > LABEL_TOLERANCE
    if broken.any():
        raise InputFault(
            f"{path.name} is no label map: it holds no whole number in {plural(int(broken.sum()), 'voxel')}, "
            f"but for example {values[broken][0]:g}.",
            "Give the segmentation itself; if it was resampled, do that again with nearest neighbours.",
        )
    if np.abs(labels).max() > np.iinfo(np.int32).max:
        raise InputFault(f"{path.name} holds values up to {np.abs(labels).max():g}.", "Give a label map.")
    return Volume(volume.name, labels.astype(np.int32), volume.affine, volume.sha256, volume.oriented)


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


def _parse(name: str, content: bytes) -> nib.Nifti1Image:
    # Unpacked in one go rather than as far as the voxels reach, so that gzip's check sum is verified.
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, error) from None
    kind = {b"n+1\0": nib.Nifti1Image, b"n+2\0": nib.Nifti2Image}
    cls = kind.get(content[344:348]) or kind.get(content[4:8])
    if cls is None:
        raise InputFault(
            f"{name} is no NIfTI file ({plural(len(content), 'byte')} without the mark n+1 or n+2).",
            "Convert it to a single .nii or .nii.gz file.",
        )
    try:
        return cls.from_bytes(content)
    except (OSError, EOFError, ValueError, HeaderDataError, ImageFileError) as error:
        raise _damaged(name, error) from None


def _voxels(name: str, image: nib.Nifti1Image) -> NDArray:
    kind = image.get_data_dtype()
    if kind.names or kind.kind not in "iuf":
        stored = "colours" if kind.names else f"{kind} numbers"
        raise InputFault(f"{name} stores {stored}, not one real number a voxel.", "Convert it to a grey-scale volume.")
    try:
        return np.asarray(image.dataobj)
    except (OSError, EOFError, ValueError) as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> InputFault:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputFault(f"{name} is cut short or damaged ({reason}).", "Copy or download it again.")


def _three_axes(name: str, array: NDArray) -> NDArray:
    shape = array.shape
    while array.ndim > 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != 3 or 0 in array.shape:
        raise InputFault(
            f"{name} has shape {_by(shape)}, not three axes.",
            "Give one volume a file: split a series into its volumes.",
        )
    return array


def _check_finite(name: str, array: NDArray) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        nans, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        raise InputFault(
            f"{name} holds NaN in {plural(nans, 'voxel')} and infinity in {infinite:,}, of {array.size:,}.",
            "Repair the file, for example by writing 0 there if they are background.",
        )


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
