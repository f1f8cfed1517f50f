"""Small NIfTI files and subjects on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

SHAPE = (8, 9, 7)


@pytest.fixture
def write_nifti(tmp_path) -> Callable[..., Path]:
    """Writes an array into a NIfTI file of the test's folder."""

    def write(name: str, array, affine=None, *, version: int = 1) -> Path:
        cls = nib.Nifti1Image if version == 1 else nib.Nifti2Image
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nib.save(cls(np.asarray(array), np.eye(4) if affine is None else affine), path)
        return path

    return write


@pytest.fixture
def head() -> dict[str, np.ndarray]:
    """A skull-stripped image, 0 outside the brain, and its mask: brain 1, tumour 2."""
    generator = np.random.default_rng(0)
    mask = np.zeros(SHAPE, np.uint8)
    mask[2:7, 2:8, 1:6] = 1
    mask[3:5, 3:5, 2:4] = 2
    image = np.where(mask > 0, generator.integers(100, 1000, SHAPE), 0).astype(np.int16)
    return {"mask": mask, "t1": image}


@pytest.fixture
def write_table(tmp_path) -> Callable[..., Path]:
    """Writes a sample table from rows of cells; the first row is the header."""

    def write(*rows: tuple[str, ...], name: str = "samples.tsv") -> Path:
        path = tmp_path / name
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def table(write_nifti, write_table, head) -> Path:
    """A sample table of three subjects with their files in folders beside it."""
    rows = [("subject", "mask", "t1")]
    for name in ("a", "b", "c"):
        for column, array in head.items():
            write_nifti(f"{name}/{column}.nii.gz", array)
        rows.append((name, f"{name}/mask.nii.gz", f"{name}/t1.nii.gz"))
    return write_table(*rows)
