"""A network and data set small enough to train in a second."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from genaccel.atomic import file_sha256
from genaccel.data.grid import plan_grid
from genaccel.data.manifest import Manifest, Subject, write_manifest
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.train.spec import TrainJob
from genaccel.variants import VARIANTS

SHAPE = (8, 8, 4)


@pytest.fixture(scope="session")
def tiny_model() -> MedDDPMSpec:
    return MedDDPMSpec.build(
        {
            "base_channels": 32,
            "channel_multipliers": [1, 1],
            "timesteps": 10,
            "dropout": 0.1,
            "shape": SHAPE,
            "image": ["t1"],
            "condition": ["brain"],
        }
    )


@pytest.fixture
def manifest(tmp_path):
    """Three training volumes and one test volume of noise; the path of their manifest."""
    generator = np.random.default_rng(0)
    grid = plan_grid(SHAPE, np.eye(4), SHAPE, "crop_pad")
    subjects = []
    for name, split in (("a", "train"), ("b", "train"), ("c", "train"), ("d", "test")):
        image = generator.uniform(-1, 1, (1, *SHAPE)).astype(np.float32)
        labels = generator.integers(0, 2, (1, *SHAPE)).astype(np.uint8)
        path = tmp_path / f"{name}.safetensors"
        save_file({"image": image, "labels": labels}, path)
        subjects.append(
            Subject(
                subject=name,
                split=split,
                volume=path.name,
                volume_sha256=file_sha256(path),
                sources={},
                grid=grid,
                label_voxels={"brain": int(labels.sum())},
                source_label_voxels={"brain": int(labels.sum())},
            )
        )
    content = Manifest(
        dataset="noise",
        kind="simulated",
        modalities=("t1",),
        channels=("brain",),
        shape=SHAPE,
        subjects=tuple(subjects),
    )
    write_manifest(tmp_path / "manifest.json", content)
    return tmp_path / "manifest.json"


@pytest.fixture
def job(tiny_model):
    """Settings of a training job, changed by keyword."""

    def build(**train) -> TrainJob:
        settings = {"steps": 6, "ema": {"start": 2}} | train
        switches = VARIANTS[settings.get("variant", "fp32_strict")].model_dump()
        model = tiny_model.model_dump(mode="json")
        return TrainJob.build({"device": "cpu", "model": model, "train": settings, "switches": switches})

    return build


@pytest.fixture
def arguments(manifest, tmp_path):
    """The command line of a training job."""

    def build(job: TrainJob, out: str = "out", conduct: str = '{"checkpoint": {"steps": 2}}') -> list[str]:
        folder = tmp_path / out
        return [
            *("--conduct", conduct),
            *("--spec", job.canonical(), "--threads", "1", "--manifest", str(manifest)),
            *("--checkpoints", str(tmp_path / "checkpoints"), "--weights", str(folder / "weights.safetensors")),
            *("--loss", str(folder / "loss.csv"), "--measurement", str(folder / "run.json")),
        ]

    return build
