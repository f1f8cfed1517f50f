"""Arrays with a record of what they are, in one safetensors file: how the metrics stage's steps hand things on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from genaccel.atomic import atomic_file
from genaccel.spec import SpecError

METADATA = "genaccel"


def write_tensors(path: str | Path, tensors: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> None:
    """Writes arrays and their record (plain values); equal contents give equal bytes."""
    # One entry: safetensors writes several in an order that changes from run to run.
    text = json.dumps(record, sort_keys=True, allow_nan=False)
    with atomic_file(path) as partial:
        save_file(
            {name: np.ascontiguousarray(values) for name, values in tensors.items()}, partial, metadata={METADATA: text}
        )


def read_tensors(
    path: str | Path, what: str, remedy: str, version: int
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What ``write_tensors`` wrote.

    Args:
        what: the file's contents, for messages.
        remedy: how to make it again.
        version: that the record must be of.

    Raises:
        SpecError: damaged, of another version, or a file of something else.
        FileNotFoundError: there is none.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no {path}; run the workflow, which makes it")
    try:
        with safe_open(path, framework="numpy") as file:
            record = json.loads((file.metadata() or {}).get(METADATA, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise SpecError(f"cannot read {what} {path} ({error}); {remedy}") from None
    found = record.get("version") if isinstance(record, dict) else None
    if found != version:
        raise SpecError(f"{path} has version {found!r}, this program reads {version}; {remedy}")
    return tensors, record
