"""Small NIfTI files and subjects on disk."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from genaccel.data.__main__ import main
from genaccel.data.faults import InputFault
from genaccel.data.faulty import SKIP
from genaccel.data.manifest import Manifest, read_manifest
from genaccel.data.spec import DataJob, DataSpec

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


@dataclass
class Study:
    """Four BraTS-like subjects, `a` and `b` to train on, `c` and `d` to test, of which tests spoil `b`.

    Attributes:
        mask: label numbers 1, 2 and 3 in 2, 4 and 2 voxels, and 4, the brain, in 142 of 504.
        image: a skull-stripped image, 0 outside the brain, int16.
        settings: of the data set; tests change them.
    """

    folder: Path
    mask: np.ndarray
    image: np.ndarray
    rows: dict[str, list[str]] = field(default_factory=dict)
    settings: dict = field(default_factory=dict)

    def write(self, column: str, array, affine=None, subject: str = "b", **header) -> Path:
        """Writes a subject's file; keywords set fields of its header."""
        array = np.asarray(array)
        image = nib.Nifti1Image(array, np.eye(4) if affine is None else affine, dtype=array.dtype)
        content = bytearray(image.to_bytes())
        for name, value in header.items():
            kind, offset = nib.Nifti1Header.template_dtype.fields[name][:2]
            content[offset : offset + kind.itemsize] = np.array(value, kind.base).tobytes()
        path = self.path(column, subject)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(bytes(content), mtime=0))
        return path

    def path(self, column: str, subject: str = "b") -> Path:
        return self.folder / subject / f"{column}.nii.gz"

    @property
    def table(self) -> Path:
        path = self.folder / "samples.tsv"
        lines = [["subject", "mask", "t1", "split"], *self.rows.values()]
        path.write_text("".join("\t".join(line) + "\n" for line in lines))
        return path

    def run(
        self, on_error: str = "stop", threads: int = 1, table: Path | None = None, needed=(), **settings
    ) -> Manifest:
        """Runs the stage in this process; what it wrote lies in ``out``."""
        main([*self.arguments(on_error, threads, table, **settings), "--needed", *needed])
        return read_manifest(self.folder / "out" / "manifest.json")

    def arguments(self, on_error: str, threads: int = 1, table: Path | None = None, **settings) -> list[str]:
        spec = DataSpec.build({**self.settings, **settings, "on_error": on_error})
        out = ["--manifest", str(self.folder / "out" / "manifest.json"), "--volumes", str(self.folder / "out/volumes")]
        job = DataJob(dataset="x", data=spec).canonical()
        return ["--spec", job, "--samples", str(table or self.table), "--threads", str(threads), *out]


@pytest.fixture
def study(tmp_path, head) -> Study:
    mask = np.where(head["mask"] == 1, 4, 0).astype(np.uint8)
    mask[3:5, 3:5, 2:4] = np.array([[1, 2], [2, 3]])[..., None]
    study = Study(tmp_path, mask, head["t1"])
    study.settings = {
        "samples": "samples.tsv",
        "labels": {"tumour_1": [1], "tumour_2": [2], "tumour_3": [3], "brain": [4]},
        "fit": "crop_pad",
        "shape": [8, 9, 7],
        "percentiles": [0, 100],
    }
    for number, subject in enumerate("abcd"):
        study.write("mask", mask, subject=subject)
        study.write("t1", (study.image + (mask > 0) * number).astype(np.int16), subject=subject)
        split = "train" if number < 2 else "test"
        study.rows[subject] = [subject, f"{subject}/mask.nii.gz", f"{subject}/t1.nii.gz", split]
    return study


@pytest.fixture
def refused(study, capsys) -> Callable[..., None]:
    """Checks what the stage says of subject `b` once a test spoilt it: to stop, and what skipping records."""

    def check(what: str, remedy: str, **settings) -> None:
        with pytest.raises(InputFault) as raised:
            study.run(**settings)
        assert f"data: {raised.value}" == f"data: b {what}\n      {remedy} {SKIP}"
        assert not (study.folder / "out" / "manifest.json").exists()
        manifest = study.run("skip", **settings)
        assert [(entry.subject, entry.reason) for entry in manifest.skipped] == [("b", f"{what} {remedy}")]
        assert [subject.subject for subject in manifest.subjects] == ["a", "c", "d"]
        assert {path.stem for path in (study.folder / "out" / "volumes").iterdir()} == {"a", "c", "d"}
        assert f"data: leaves out b: {what} {remedy}\n" in capsys.readouterr().err

    return check
