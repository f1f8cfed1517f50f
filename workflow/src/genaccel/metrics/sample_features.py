"""The file of the synthetic volumes' features, from which two runs are compared without their network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genaccel.metrics.reference import NetworkRecord
from genaccel.metrics.tensor_file import read_tensors, write_tensors
from genaccel.spec import Spec, SpecError

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
    write_tensors(path, tensors, found.record.model_dump(mode="json"))


def read_sample_features(path: Path) -> SampleFeatures:
    """What ``write_sample_features`` wrote.

    Raises:
        SpecError: damaged, of another version, or no such file's contents.
        FileNotFoundError: there is none.
    """
    remedy = "score its samples again (python -m genaccel.metrics)"
    tensors, data = read_tensors(path, "the features", remedy, VERSION)
    record = SampleRecord.build(data, where=str(path))
    shape = (len(record.subjects), record.network.dimension)
    if set(tensors) != set(record.modalities) or any(rows.shape != shape for rows in tensors.values()):
        raise SpecError(f"{path} does not hold what its metadata says: {shape} features a modality; {remedy}")
    return SampleFeatures(record, tensors)
