"""From a file's bytes to a NIfTI image whose header and length hold what they promise."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError

from genaccel.data.faults import InputFault, plural

GZIP = b"\x1f\x8b"
NIFTI = {b"n+1\0": nib.Nifti1Image, b"n+2\0": nib.Nifti2Image}
CONVERT = "Convert it to a single .nii or .nii.gz file."
COPY = "Copy or download it again."
# What lies in the place of a volume most often: where its mark stands, the mark, what it is, what to do.
OTHERS = (
    (344, b"ni1\0", "the header of an .hdr/.img pair", CONVERT),
    (344, b"ni2\0", "the header of an .hdr/.img pair", CONVERT),
    (128, b"DICM", "a DICOM file", "Convert its series, for example with dcm2niix."),
    (0, b"NRRD", "an NRRD file", CONVERT),
    (0, b"\0\0\0\1", "an MGH file", "Convert it, for example with mri_convert."),
    (0, b"PK\3\4", "a ZIP archive", "Unpack it."),
    (0, b"\x89PNG", "a PNG picture", "Give the volume that it shows."),
    (0, b"version https://git-lfs", "a Git LFS pointer", "Fetch the file itself: git lfs pull."),
    (0, b"<!doctype html", "a web page", "Download it again; the server answered with a page, perhaps to log in."),
    (0, b"<html", "a web page", "Download it again; the server answered with a page, perhaps to log in."),
)
# Rounding of a header's float32 numbers.
QUATERNION_TOLERANCE = 1e-6


def read_bytes(path: Path) -> bytes:
    """The file's bytes.

    Raises:
        InputFault: it is gone or closed to this user. A disk or network that fails is no fault of the file,
            and stays the error that it is.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise InputFault(
            f"{path.name} cannot be read ({error.strerror}: {path}).", "Mend its path or its permissions."
        ) from None


def parse_nifti(name: str, content: bytes) -> nib.Nifti1Image:
    """A single-file NIfTI of version 1 or 2, packed by gzip or not, whatever its name says.

    Raises:
        InputFault: of another type; cut short; damaged; a header that contradicts itself.
    """
    packed = content[:2] == GZIP
    whole = True
    if packed:
        content, whole = _unpack(name, content)
    cls = NIFTI.get(content[344:348]) or NIFTI.get(content[4:8])
    if cls is None:
        if not whole:
            raise InputFault(f"{name} is cut short: only {plural(len(content), 'byte')} of it unpack.", COPY)
        raise _another_type(name, content)
    image = _image(name, cls, content)
    _check_length(name, image, content, packed)
    if not whole:
        raise InputFault(f"{name} is cut short: the check sum at its end is missing.", COPY)
    return image


def _unpack(name: str, content: bytes) -> tuple[bytes, bool]:
    """The unpacked bytes, in one go so that gzip's check sum is verified, and whether they are all."""
    try:
        return gzip.decompress(content), True
    except EOFError:
        return _as_far_as_possible(content), False
    except (OSError, zlib.error):
        raise InputFault(f"{name} is damaged: its bytes do not fit gzip's check sum.", COPY) from None


def _as_far_as_possible(content: bytes) -> bytes:
    parts = []
    while content[:2] == GZIP:
        unpacker = zlib.decompressobj(wbits=31)
        parts.append(unpacker.decompress(content))
        content = unpacker.unused_data
    return b"".join(parts)


def _another_type(name: str, content: bytes) -> InputFault:
    size = plural(len(content), "byte")
    if not content:
        return InputFault(f"{name} is no NIfTI file: it is empty.", COPY)
    for start, mark, kind, remedy in OTHERS:
        if content[start : start + len(mark)].lower() == mark.lower():
            return InputFault(f"{name} is no NIfTI file but {kind} of {size}.", remedy)
    return InputFault(f"{name} is no NIfTI file: its {size} lack the mark n+1 or n+2.", CONVERT)


def _image(name: str, cls: type[nib.Nifti1Image], content: bytes) -> nib.Nifti1Image:
    size = cls.header_class.sizeof_hdr
    try:
        header = cls.header_class(content[:size].ljust(size, b"\0"), check=False)
        _check_scaling(name, header)
        _check_quaternion(name, header)
        return cls.from_bytes(content)
    except InputFault:
        raise
    except (OSError, EOFError, ValueError, HeaderDataError, ImageFileError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputFault(f"{name} has a damaged header ({reason}).", COPY) from None


def _check_scaling(name: str, header: nib.Nifti1Header) -> None:
    """Refuses a slope that NaN has spoilt; 0 and a pair of NaN both mean: no scaling."""
    slope, inter = float(header["scl_slope"]), float(header["scl_inter"])
    unscaled = slope == 0 or (math.isnan(slope) and math.isnan(inter))
    if not unscaled and not (math.isfinite(slope) and math.isfinite(inter)):
        raise InputFault(
            f"{name} has a header that scales all voxels by slope {slope:g} and intercept {inter:g}, as writers make "
            "it that met NaN or infinity.",
            "Write it again from its original, as floating point, with NaN and infinity repaired.",
        )


def _check_quaternion(name: str, header: nib.Nifti1Header) -> None:
    used = header["qform_code"] > 0 and header["sform_code"] <= 0
    length = math.sqrt(sum(float(header[f"quatern_{part}"]) ** 2 for part in "bcd"))
    if used and not length <= 1 + QUATERNION_TOLERANCE:
        raise InputFault(
            f"{name} has a qform that is no rotation: its quaternion has length {length:.4g}, not at most 1.",
            "Mend the header's qform, or set its sform.",
        )


def _check_length(name: str, image: nib.Nifti1Image, content: bytes, packed: bool) -> None:
    """Before voxels are read: a header that promises too much would ask for memory that no machine has."""
    shape, stored = image.shape, image.get_data_dtype()
    if min(shape, default=0) < 1:
        raise InputFault(f"{name} has a damaged header: it gives the shape {'x'.join(map(str, shape))}.", COPY)
    needed = int(image.dataobj.offset) + math.prod(map(int, shape)) * np.dtype(stored).itemsize
    if len(content) < needed:
        there = "unpack" if packed else "are there"
        raise InputFault(
            f"{name} is cut short: its header announces {plural(needed, 'byte')}, of which {len(content):,} {there}.",
            COPY,
        )
