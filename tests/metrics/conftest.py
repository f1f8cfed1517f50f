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
from genaccel.metrics import real

torch.set_num_threads(1)


class OctantNetwork:
    """Means of the volume's octants in place of a feature network."""

    name, dimension, sha256 = "deepbet", 8, "c" * 64

    def __call__(self, volumes):
        return torch.nn.functional.adaptive_avg_pool3d(volumes, 2).flatten(1)


MEDICALNET = {
    "medicalnet_10": ("resnet10", "B"),
    "medicalnet_18": ("resnet18", "A"),
    "medicalnet_50": ("resnet50", "B"),
}


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A file in the layout of MedicalNet's, with random weights: ``published("medicalnet_10")`` is its path."""
    folder, paths = tmp_path_factory.mktemp("medicalnet"), {}

    def write(name):
        if name not in paths:
            from monai.networks.nets import resnet

            builder, shortcut = MEDICALNET[name]
            torch.manual_seed(0)
            network = getattr(resnet, builder)(
                spatial_dims=3,
                n_input_channels=1,
                feed_forward=False,
                conv1_t_stride=2,
                shortcut_type=shortcut,
                bias_downsample=False,
            )
            # Statistics as training leaves them: without, activations grow from block to block.
            for module in network.modules():
                if isinstance(module, torch.nn.BatchNorm3d):
                    module.momentum = None
            network.train()(torch.randn(4, 1, 32, 32, 32))
            state = {f"module.{key}": tensor for key, tensor in network.state_dict().items()}
            paths[name] = folder / f"{name}.pth"
            torch.save({"state_dict": state}, paths[name])
        return paths[name]

    return write


@pytest.fixture
def octants():
    return OctantNetwork()


@pytest.fixture
def see(octants, monkeypatch):
    """Features of a study's real volumes, as the command writes them: ``see(study)``."""

    def run(study, network=octants):
        monkeypatch.setattr(real, "feature_network", lambda *settings: network)
        spec = {"device": "cpu", "dataset": "fake", "features": {}}
        paths = ["--manifest", str(study.manifest), "--out", str(study.real)]
        real.main(["--spec", json.dumps(spec), "--threads", "1", *paths])

    return run


@dataclass
class Study:
    """Where the files lie; `spec` is the settings of a metrics job. Those of `real` and `segmenter` are to be made."""

    manifest: Path
    samples: Path
    real: Path
    segmenter: Path
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
    def make(subjects=3, modalities=("t1",), per_mask=1, shape=(12, 14, 10), train=1) -> Study:
        rng = np.random.default_rng(0)
        (tmp_path / "volumes").mkdir()
        (tmp_path / "samples").mkdir()
        entries, volumes = [], []
        for number in range(1 - train, subjects + 1):
            name = f"s{number:02d}" if number >= 0 else f"t{-number:02d}"
            labels = np.zeros((2, *shape), np.uint8)
            labels[0, 3:9, 3:10, 2:8] = 1
            labels[1, 4:6, 4:6, 4:6] = 1
            labels[0][labels[1] > 0] = 0
            image = (rng.uniform(-1, 1, (len(modalities), *shape)) * labels.any(0)).astype(np.float32)
            save_file({"image": image, "labels": labels}, tmp_path / "volumes" / f"{name}.safetensors")
            # The first ones are for training: they have no samples.
            entries.append(entry(name, "train" if number < 1 else "test", shape))
            for sample in range(per_mask if number > 0 else 0):
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
        index = {
            "model": "tiny",
            "sampler": "ddim",
            "steps": 5,
            "eta": 0.0,
            "seed": 7,
            "split": "test",
            "variant": "tf32",
        }
        index |= {"spec_sha256": "a" * 64, "weights_sha256": "b" * 64, "volumes": volumes}
        (tmp_path / "samples" / "index.json").write_text(json.dumps(index))
        settings = {"ssim_window": 5, "ssim_sigma": 0.7}
        spec = {"device": "cpu", "model": "tiny", "sampler": "ddim", "steps": 5, "variant": "tf32", "metrics": settings}
        real, segmenter = tmp_path / "real.safetensors", tmp_path / "segmenter.safetensors"
        return Study(tmp_path / "manifest.json", tmp_path / "samples", real, segmenter, spec)

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
