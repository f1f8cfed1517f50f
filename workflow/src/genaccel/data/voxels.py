"""What a file's numbers may be: finite, no mark for a lost NaN and, in a mask, whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from genaccel.data.faults import InputFault, plural

# Labels in floating point come back from their tools this close to whole numbers.
LABEL_TOLERANCE = 1e-3
# A slope this close to 1, such as 0.99998, is a writer's rounding: the label is the integer in the file.
SLOPE_TOLERANCE = 1e-3
# Labels that a writer spread over an integer's range come back half a step off; beyond this it is no rounding.
LARGEST_STEP = 0.04
LARGEST = float(np.finfo(np.float32).max)

# What NaN and infinity become in integers, by processor and compiler. Where NaN becomes 0, as in types of 8 bits,
# in uint16 and wherever nibabel writes, it looks like background, and no reader can tell.
SENTINELS = {
    "int16": (-(2**15),),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (2**31, 2**32 - 1),
    "uint64": (2**63, 2**64 - 1),
}


@dataclass(frozen=True)
class Stored:
    """A file's voxels.

    Attributes:
        numbers: (I, J, K), as the file stores them.
        scaled: the same times ``slope`` plus ``inter``.
    """

    numbers: NDArray
    scaled: NDArray
    slope: float
    inter: float


def check_finite(name: str, array: NDArray) -> None:
    """Raises InputFault where voxels are NaN, infinite or beyond single precision, saying how many."""
    if array.dtype.kind != "f":
        return
    if not np.isfinite(array).all():
        nans, infinite = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        raise InputFault(
            f"{name} holds NaN in {plural(nans, 'voxel')} and infinity in {infinite:,}, of {array.size:,}.",
            "Repair the file, for example by writing 0 there if they are background.",
        )
    largest = max(-array.min(), array.max())
    if largest > LARGEST:
        huge = int(np.count_nonzero(np.abs(array) > LARGEST))
        raise InputFault(
            f"{name} holds values up to {largest:.3g}, in {huge:,} of {array.size:,} voxels beyond single precision.",
            "Write it again; such values come of a wrong byte order or data type in the header.",
        )


def check_no_sentinel(name: str, numbers: NDArray) -> None:
    """Raises InputFault where an integer's extreme stands far from all other voxels: a NaN once, not an intensity.

    A writer that scales to the whole range of the type reaches its extremes too, but then others lie near them.
    """
    kind = numbers.dtype.newbyteorder("=").name
    marks = SENTINELS.get(kind)
    if not marks or not {int(numbers.min()), int(numbers.max())} & set(marks):
        return
    hit = np.isin(numbers, np.array(marks, dtype=kind))
    others, half = numbers[~hit], int(np.iinfo(kind).max) // 2
    if others.size and int(others.min()) >= -half and int(others.max()) <= half:
        raise InputFault(
            f"{name} stores {kind} and holds {_range(numbers[hit])} in {int(hit.sum()):,} of {numbers.size:,} voxels, "
            f"while all others lie within {_range(others)}: NaN or infinity that became an integer.",
            "Write it again as floating point and repair these voxels, for example by the background's value.",
        )


def whole_numbers(name: str, stored: Stored) -> NDArray[np.int32]:
    """A label map's labels.

    Integers whose slope is 1 but for a writer's rounding are taken as stored; others are rounded.

    Raises:
        InputFault: values that are further from a whole number than rounding explains, or too large.
    """
    integer = stored.numbers.dtype.kind in "iu"
    if integer and abs(stored.slope - 1) < SLOPE_TOLERANCE and abs(stored.inter) < SLOPE_TOLERANCE:
        labels = stored.numbers
    else:
        labels = _rounded(name, stored, integer)
    largest = max(abs(int(labels.min())), abs(int(labels.max())))
    if largest > np.iinfo(np.int32).max:
        raise InputFault(f"{name} holds values up to {largest:.6g}.", "Give a label map.")
    return labels.astype(np.int32)


def _rounded(name: str, stored: Stored, integer: bool) -> NDArray[np.float64]:
    # Rounding float64 keeps what float32 would merge.
    values = stored.scaled.astype(np.float64)
    labels = np.rint(values)
    step = abs(stored.slope) if integer else 0.0
    tolerance = max(LABEL_TOLERANCE, 0.501 * step if step <= LARGEST_STEP else 0.0)
    broken = np.abs(values - labels) > tolerance
    if broken.any():
        scaled = f" (stored as {stored.numbers.dtype.name} times {stored.slope:g})" if integer else ""
        raise InputFault(
            f"{name} is no label map: it holds no whole number in {plural(int(broken.sum()), 'voxel')}, "
            f"but for example {values[broken][0]:g}{scaled}.",
            "Give the segmentation itself; if it was resampled, do that again with nearest neighbours"
            + (", and save it as integers without a slope." if integer else "."),
        )
    return labels


def _range(numbers: NDArray) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low}" if low == high else f"{low} to {high}"
