"""Whether runs that stand in one table were made with like software and of like work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from genaccel.measurement import Run

VENDORS = ("cuda", "cudnn", "synapse", "driver")
"""Versions that only devices of one kind share."""


def unlike(runs: Iterable[Run]) -> list[str]:
    """A line a difference: versions of torch over all runs, of the rest over those of one kind of device, and work."""
    runs = list(runs)
    lines = [*_differences("torch", ((run.device, _torch(run.provenance)) for run in runs))]
    for kind in sorted({str(_device(run).get("kind")) for run in runs}):
        same = [run for run in runs if str(_device(run).get("kind")) == kind]
        for name in VENDORS:
            lines += _differences(name, ((run.device, _device(run).get(name)) for run in same))
    for stage, model in sorted({(run.stage, run.model) for run in runs}):
        lines += _work(stage, model, [run for run in runs if (run.stage, run.model) == (stage, model)])
    return lines


def _differences(what: str, found: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """``unlike torch: 2.11.0 (nvidia-a100), 2.13.0 (nvidia-h200)``; nothing where all that tell say the same."""
    devices: dict[str, set[str]] = defaultdict(set)
    for device, version in found:
        if version:
            devices[str(version)].add(device)
    if len(devices) > 1:
        each = (f"{version} ({', '.join(sorted(names))})" for version, names in sorted(devices.items()))
        yield f"unlike {what}: {', '.join(each)}"


def _work(stage: str, model: str, runs: Iterable[Run]) -> Iterator[str]:
    """Of a model's runs: whether every device did the same work, which is what makes their times comparable."""
    hashes: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        hashes[run.device].add(run.workload_sha256[:12])
    works = {frozenset(found) for found in hashes.values()}
    if len(works) > 1:
        each = (f"{'+'.join(sorted(found))} ({device})" for device, found in sorted(hashes.items()))
        yield f"unlike work of {model} in {stage}, by workload_sha256: {', '.join(each)}"


def _device(run: Run) -> dict[str, Any]:
    device = run.provenance.get("device")
    return device if isinstance(device, dict) else {}


def _torch(provenance: dict[str, Any]) -> str | None:
    version = provenance.get("packages", {}).get("torch") or provenance.get("torch_build")
    # Builds for CPU and CUDA of one release are alike.
    return version and str(version).split("+")[0]
