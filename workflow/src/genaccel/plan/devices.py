"""Accelerators by name: memory, datasheet peaks and what they lack, from ``devices.csv``."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from genaccel.device import CPU, Precision, open_device
from genaccel.resources import read_resource
from genaccel.spec import SpecError, nearest

GIB = 2**30

NAMES = {"tf32": "TF32", "bf16": "BF16", "fused": "fused kernels"}


@dataclass(frozen=True)
class KnownDevice:
    """One accelerator.

    Attributes:
        slug: pattern that the slugs of its makers' names match.
        memory_bytes: what a process can use at most.
        tflops: datasheet peak by precision, dense; a precision without a known peak is left out.
        bandwidth_gbs: datasheet peak of the memory; None where not known.
        lacks: why it has not a precision, or the fused kernels (``fused``).
    """

    name: str
    slug: str
    memory_bytes: int
    tflops: dict[str, float]
    bandwidth_gbs: float | None
    lacks: dict[str, str]


def known_devices() -> dict[str, KnownDevice]:
    """Every device of ``devices.csv`` by name, the CPU with this machine's memory."""
    return {row["name"]: _device(row) for row in read_resource("devices.csv")}


def find_device(name: str) -> KnownDevice:
    """A device by name, whatever its case.

    Raises:
        SpecError: no such device.
    """
    devices = known_devices()
    for known, device in devices.items():
        if known.lower() == name.lower():
            return device
    raise SpecError(
        f"--device {name} is unknown; {nearest(name, devices)} (a row in workflow/resources/devices.csv adds one)"
    )


def local_device(kind: str) -> KnownDevice | None:
    """The device that a job with ``device: kind`` would take here; None where there is no GPU for it.

    A login node without a GPU tells nothing of where jobs will run, so that ``auto`` then is no answer either.
    """
    if kind == "cpu":
        return find_device("cpu")
    here = open_device("auto")
    if isinstance(here, CPU):
        return None
    known = next((d for d in known_devices().values() if re.search(d.slug, here.slug)), None)
    capabilities = {"tf32": "tf32", "bf16": "bf16", "fused": "fused_kernels"}
    lacks = {name: reason for name, capability in capabilities.items() if (reason := here.lacks(capability))}
    if known is None:
        return KnownDevice(here.slug, re.escape(here.slug), here.memory_bytes(), {}, None, lacks)
    return dataclasses.replace(known, memory_bytes=here.memory_bytes(), lacks=lacks)


def _device(row: dict[str, str]) -> KnownDevice:
    precisions: tuple[Precision, ...] = ("fp32", "tf32", "bf16")
    return KnownDevice(
        name=row["name"],
        slug=row["slug"],
        memory_bytes=round(float(row["memory_gib"]) * GIB) if row["memory_gib"] else CPU().memory_bytes(),
        tflops={p: float(row[f"{p}_tflops"]) for p in precisions if row[f"{p}_tflops"]},
        bandwidth_gbs=float(row["bandwidth_gbs"]) if row["bandwidth_gbs"] else None,
        lacks={name: f"{row['name']} has no {NAMES[name]}" for name in row["lacks"].split()},
    )
