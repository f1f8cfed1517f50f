"""The file of the real volumes' features and thumbnails, which all samples of a data set are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from genaccel.metrics.features import FeatureNetwork
from genaccel.metrics.tensor_file import read_tensors, write_tensors
from genaccel.spec import Spec, SpecError

VERSION = 1


class NetworkRecord(BaseModel):
    """Which network the features are of."""

    # Closed like a Spec, but none: its `sha256` is a value and not a method.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str
    sha256: str
    dimension: int


class RealRecord(Spec):
    """What the tensors are.

    Attributes:
        subjects: in the order of the tensors' rows.
        splits: of each.
        bandwidth: of MMD's kernel by modality; None where all volumes are equal, or there is one.
    """

    version: Literal[1] = VERSION
    network: NetworkRecord
    manifest_sha256: str
    modalities: tuple[str, ...]
    subjects: tuple[str, ...]
    splits: tuple[str, ...]
    bandwidth: dict[str, float | None]


class RealVolumes:
    """All real volumes of a data set.

    Attributes:
        record: what they are.
        features: by modality, (N, d) float64.
        thumbnails: by modality, (N, k) float32.
    """

    def __init__(self, record: RealRecord, features: Mapping[str, NDArray], thumbnails: Mapping[str, NDArray]) -> None:
        self.record, self.features, self.thumbnails = record, features, thumbnails

    def in_split(self, split: str) -> NDArray[np.bool_]:
        """Which rows are of a split, (N,)."""
        return np.array([own == split for own in self.record.splits], dtype=bool)

    def subjects(self, rows: Sequence[int] | NDArray[np.intp]) -> list[str]:
        return [self.record.subjects[row] for row in rows]

    def check(self, network: FeatureNetwork, manifest_sha256: str, where: Path) -> None:
        """Raises SpecError where these are features of another network, or of another manifest."""
        own = self.record.network
        if (own.name, own.sha256) != (network.name, network.sha256):
            raise SpecError(
                f"{where} holds features of {own.name} ({own.sha256[:12]}), but metrics.features says {network.name} "
                f"({network.sha256[:12]}); delete it and run again"
            )
        if self.record.manifest_sha256 != manifest_sha256:
            raise SpecError(
                f"{where} was made of another manifest ({self.record.manifest_sha256[:12]}) than the one that "
                f"is scored ({manifest_sha256[:12]}); delete it and run again"
            )


def write_real(path: Path, real: RealVolumes) -> None:
    """Writes all; equal contents give equal bytes."""
    tensors = {f"features/{name}": np.ascontiguousarray(rows, np.float64) for name, rows in real.features.items()}
    tensors |= {f"thumbnails/{name}": np.ascontiguousarray(rows, np.float32) for name, rows in real.thumbnails.items()}
    write_tensors(path, tensors, real.record.model_dump(mode="json"))


def read_real(path: Path) -> RealVolumes:
    """What ``write_real`` wrote.

    Raises:
        SpecError: damaged, of another version, or no such file's contents.
        FileNotFoundError: there is none.
    """
    remedy = "delete it and run again"
    tensors, data = read_tensors(path, "the real volumes' features", remedy, VERSION)
    record = RealRecord.build(data, where=str(path))
    wanted = {f"{kind}/{name}" for kind in ("features", "thumbnails") for name in record.modalities}
    count, dimension = len(record.subjects), record.network.dimension
    if set(tensors) != wanted or len(record.splits) != count or set(record.bandwidth) != set(record.modalities):
        raise SpecError(f"{path} does not hold what its metadata says; {remedy}")
    features, thumbnails = ({m: tensors[f"{k}/{m}"] for m in record.modalities} for k in ("features", "thumbnails"))
    for name in record.modalities:
        shape, rows = features[name].shape, len(thumbnails[name])
        if shape != (count, dimension) or rows != count:
            raise SpecError(
                f"{path} holds {shape} features and {rows} thumbnails of {name}, its metadata says "
                f"{count} volumes of {dimension} features; {remedy}"
            )
    return RealVolumes(record, features, thumbnails)
