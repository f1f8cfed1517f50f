"""A project in which nothing has run, and the paper's study with tables to plan it by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from genaccel.config.compose import compose, medddpm
from genaccel.med_ddpm.spec import MedDDPMSpec
from genaccel.plan.demand import Demand
from genaccel.plan.devices import KnownDevice

COLUMNS = ("mask", "t1", "t1ce", "t2", "flair")


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """On tensors this small a second thread waits longer than it works."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def paper(root) -> dict[str, MedDDPMSpec]:
    """The networks of config/paper.yaml by name."""
    config = compose(yaml.safe_load((root / "config/paper.yaml").read_text()))
    return {name: medddpm(config, name) for name in config.models}


@pytest.fixture(scope="session")
def at_size(paper) -> Callable[[str, str], MedDDPMSpec]:
    """A network of the paper on another grid: ``at_size("whole_head", "64x64x64")``."""

    def make(network: str, shape: str) -> MedDDPMSpec:
        return paper[network].model_copy(update={"shape": tuple(map(int, shape.split("x")))})

    return make


@pytest.fixture
def device() -> Callable[..., KnownDevice]:
    """A device of a made-up kind."""

    def make(**changes: Any) -> KnownDevice:
        base = {"name": "X-1", "slug": "x-1", "memory_bytes": 10 * 2**30, "tflops": {}, "bandwidth_gbs": None}
        return KnownDevice(**{**base, "lacks": {}, **changes})

    return make


@pytest.fixture
def training(paper) -> Callable[..., Demand]:
    """A training of a small network at 64^3."""
    changes = {"shape": (64, 64, 64), "channel_multipliers": (1, 1), "attention_downsampling": 0}

    def make(**changed: Any) -> Demand:
        base = {
            "job": "train_model model=m",
            "rule": "train_model",
            "model": "m",
            "stage": "train",
            "network": paper["whole_head"].model_copy(update=changes),
            "step": "train",
            "precision": "fp32",
            "kernels": "stock",
            "batch": 1,
            "gradient_checkpointing": False,
            "steps": 1000,
            "devices": 1,
        }
        return Demand(**{**base, **changed})

    return make


@pytest.fixture(scope="module")
def project(copy_project, tmp_path_factory) -> Path:
    """A copy of the project with the paper's sample tables, of ten subjects with empty files."""
    folder = copy_project(tmp_path_factory.mktemp("plan") / "project")
    for table in ("whole_head", "brats"):
        rows = ["\t".join(["subject", *COLUMNS])]
        for subject in (f"s{i}" for i in range(10)):
            names = [f"{table}-{subject}_{column}.nii.gz" for column in COLUMNS]
            for name in names:
                (folder / "config" / name).touch()
            rows.append("\t".join([subject, *names]))
        (folder / f"config/{table}.tsv").write_text("\n".join(rows) + "\n")
    return folder
