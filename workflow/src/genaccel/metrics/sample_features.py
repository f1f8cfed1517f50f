"""The file of the synthetic volumes' features, from which two runs are compared without their network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from genaccel.atomic import atomic_file
from genaccel.metrics.reference import NetworkRecord
from genaccel.spec import Spec, SpecError

METADATA = "genaccel"
VERSION = 1


class SampleRecord(Spec):
    """What the rows are: subject and number of each volume, in order; and of which samples."""

    version: Literal[1] = VERSION
    network: NetworkRecord
    sample_spec_sha256: str
    weights_sha256: str
    subjects: tuple[str, ...]
    samples: tuple[int, ...]
    modalities: tuple[str, ...]


class SampleFeatures:
    """Features of all synthetic volumes of a run.

    Attributes:
        record: what the rows are.
        features: by modality, (n, d) float64.
    """

    def __init__(self, record: SampleRecord, features: Mapping[str, NDArray[np.float64]]) -> None:
        self.record, self.features = record, features


def write_sample_features(path: Path, found: SampleFeatures) -> None:
    """Writes all; equal contents give equal bytes."""
    tensors = {name: np.ascontiguousarray(rows, np.float64) for name, rows in found.features.items()}
    text = json.dumps(found.record.model_dump(mode="json"), sort_keys=True, allow_nan=False)
    with atomic_file(path) as partial:
        save_file(tensors, partial, metadata={METADATA: text})


def read_sample_features(path: Path) -> SampleFeatures:
    """What ``write_sample_features`` wrote.

    Raises:
        SpecError: damaged, of another version, or no such file's contents.
        FileNotFoundError: there is none.
    """
    remedy = "score its samples again (python -m genaccel.metrics)"
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no {path}; {remedy}")
    try:
        with safe_open(path, framework="numpy") as file:
            data = json.loads((file.metadata() or {}).get(METADATA, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise SpecError(f"cannot read the features {path} ({error}); {remedy}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise SpecError(f"{path} has version {version!r}, this program reads {VERSION}; {remedy}")
    record = SampleRecord.build(data, where=str(path))
    shape = (len(record.subjects), record.network.dimension)
    if set(tensors) != set(record.modalities) or any(rows.shape != shape for rows in tensors.values()):
        raise SpecError(f"{path} does not hold what its metadata says: {shape} features a modality; {remedy}")
    return SampleFeatures(record, tensors)
