"""Small files as the stages `data`, `train`, `sample` and `metrics` leave them, and a way to read a figure back."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save_file

from genaccel.data.grid import plan_grid
from genaccel.data.manifest import Manifest, Source, Subject, write_manifest
from genaccel.measurement import Result, Run, tidy_rows, write_table


@pytest.fixture
def make_spec():
    """JSON of a figure's job; small and fast unless said otherwise."""

    def make(title="tiny", **settings) -> str:
        return json.dumps({"title": title, "figures": {"dpi": 40} | settings})

    return make


@pytest.fixture
def make_study(tmp_path, sign):
    def make(subjects=2, modalities=("t1",), per_mask=1, shape=(12, 16, 8), kind="simulated", warnings=()):
        rng = np.random.default_rng(0)
        (tmp_path / "volumes").mkdir()
        (tmp_path / "samples").mkdir()
        entries, volumes = [], []
        for number in range(subjects):
            name = f"s{number:02d}"
            labels = np.zeros((2, *shape), np.uint8)
            labels[0, 2:10, 3:13, 1:7] = 1
            labels[1, 4:6, 8:10, 3:5] = 1
            image = np.where(labels.any(0), rng.uniform(-0.8, 1, (len(modalities), *shape)), -1).astype(np.float32)
            save_file({"image": image, "labels": labels}, tmp_path / "volumes" / f"{name}.safetensors")
            entries.append(entry(name, shape, warnings))
            for sample in range(per_mask):
                file = f"{name}-{sample}.safetensors"
                save_file({"image": -image}, tmp_path / "samples" / file)
                volumes.append({"subject": name, "sample": sample, "volume": file})
        manifest = Manifest(
            dataset="fake",
            kind=kind,
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
        return SimpleNamespace(manifest=tmp_path / "manifest.json", samples=tmp_path / "samples")

    return make


def entry(name: str, shape: tuple[int, int, int], warnings: tuple[str, ...]) -> Subject:
    mask = Source(path="mask.nii.gz", sha256="0" * 64, shape=shape, spacing=(2.0, 3.0, 4.0), orientation="LPS")
    return Subject(
        subject=name,
        split="test",
        volume=f"volumes/{name}.safetensors",
        volume_sha256="0" * 64,
        sources={"mask": mask},
        grid=plan_grid(shape, np.diag([2.0, 3.0, 4.0, 1.0]), shape, "crop_pad"),
        label_voxels={"brain": 472, "tumour": 8},
        source_label_voxels={"brain": 472, "tumour": 8},
        warnings=warnings,
    )


@pytest.fixture
def make_table(tmp_path):
    """Writes a tidy table of the results of models: ``{model: [Result, ...]}``."""

    def make(models: dict[str, list[Result]], stage="metrics", variant="fp32_strict") -> Path:
        rows = []
        for model, results in models.items():
            run = Run(
                stage=stage,
                model=model,
                variant=variant,
                device="cpu",
                spec={},
                workload={},
                provenance={},
                results=tuple(results),
            )
            rows += tidy_rows(run)
        write_table(tmp_path / "table.csv", rows)
        return tmp_path / "table.csv"

    return make


SAMPLING = {"sampler": "ddim", "steps": 25, "split": "test", "size": "32x32x32"}


@pytest.fixture(scope="session")
def image():
    """A score of single volumes, as the stage `metrics` writes it."""

    def make(metric="ssim", values=(0.5, 0.6, 0.7), region="whole", modality="t1", **case) -> Result:
        case = SAMPLING | {"modality": modality, "region": region} | case
        case |= {"window": 7, "sigma": 1.5} if metric == "ssim" else {}
        return Result(metric=metric, unit="dB" if metric == "psnr" else "1", case=case, values=values)

    return make


@pytest.fixture(scope="session")
def distance():
    """A score of whole sets, with the ends of its interval and its floor where they are given."""

    def make(metric="fid", value=12.345, low=None, high=None, floor=(), n=4, **case) -> list[Result]:
        case = SAMPLING | {"modality": "t1", "features": "deepbet", "dimension": 240, "n_reference": 3} | case
        found = {metric: (value,), f"{metric}_low": (low,), f"{metric}_high": (high,), f"{metric}_floor": floor}
        return [
            Result(metric=name, unit="1", case=case, values=values, n=n)
            for name, values in found.items()
            if values and values != (None,)
        ]

    return make


@pytest.fixture
def texts():
    """All that is written in a figure."""

    def read(figure) -> list[str]:
        from matplotlib.text import Text

        return [text.get_text() for text in figure.findobj(Text) if text.get_text()]

    return read
