"""A small study on disk, as the stages `data` and `sample` leave it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from genaccel.data.grid import plan_grid
from genaccel.data.manifest import Manifest, Subject, write_manifest

torch.set_num_threads(1)


@dataclass
class Study:
    """Where the files lie; `spec` is the settings of a metrics job."""

    manifest: Path
    samples: Path
    spec: dict

    def image(self, name: str) -> np.ndarray:
        return load_file(self.samples / f"{name}.safetensors")["image"]

    def replace(self, name: str, image: np.ndarray) -> None:
        save_file({"image": np.ascontiguousarray(image)}, self.samples / f"{name}.safetensors")

    def index(self, **changes) -> None:
        path = self.samples / "index.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def make_study(tmp_path, sign):
    def make(subjects=3, modalities=("t1",), per_mask=1, shape=(12, 14, 10)) -> Study:
        rng = np.random.default_rng(0)
        (tmp_path / "volumes").mkdir()
        (tmp_path / "samples").mkdir()
        entries, volumes = [], []
        for number in range(subjects + 1):
            name = f"s{number:02d}"
            labels = np.zeros((2, *shape), np.uint8)
            labels[0, 3:9, 3:10, 2:8] = 1
            labels[1, 4:6, 4:6, 4:6] = 1
            labels[0][labels[1] > 0] = 0
            image = (rng.uniform(-1, 1, (len(modalities), *shape)) * labels.any(0)).astype(np.float32)
            save_file({"image": image, "labels": labels}, tmp_path / "volumes" / f"{name}.safetensors")
            # The first is for training: nothing may score it.
            entries.append(entry(name, "train" if number == 0 else "test", shape))
            for sample in range(per_mask if number else 0):
                synthetic = np.clip(image + rng.normal(0, 0.2, image.shape), -1, 1).astype(np.float32)
                save_file({"image": synthetic}, tmp_path / "samples" / f"{name}-{sample}.safetensors")
                volumes.append({"subject": name, "sample": sample, "volume": f"{name}-{sample}.safetensors"})
        manifest = Manifest(
            dataset="fake",
            kind="simulated",
            modalities=modalities,
            channels=("brain", "tumour"),
            shape=shape,
            subjects=tuple(entries),
        )
        write_manifest(tmp_path / "manifest.json", manifest)
        sign(tmp_path / "manifest.json")
        index = {"model": "tiny", "sampler": "ddim", "steps": 5, "eta": 0.0, "seed": 7, "split": "test"}
        index |= {"spec_sha256": "a" * 64, "weights_sha256": "b" * 64, "volumes": volumes}
        (tmp_path / "samples" / "index.json").write_text(json.dumps(index))
        settings = {"ssim_window": 5, "ssim_sigma": 0.7, "features": "deepbet"}
        spec = {"device": "cpu", "model": "tiny", "sampler": "ddim", "metrics": settings}
        return Study(tmp_path / "manifest.json", tmp_path / "samples", spec)

    return make


def entry(name: str, split: str, shape: tuple[int, int, int]) -> Subject:
    return Subject(
        subject=name,
        split=split,
        volume=f"volumes/{name}.safetensors",
        volume_sha256="0" * 64,
        sources={},
        grid=plan_grid(shape, np.diag([4.0, 4.0, 4.0, 1.0]), shape, "crop_pad"),
        label_voxels={"brain": 244, "tumour": 8},
        source_label_voxels={"brain": 244, "tumour": 8},
    )
