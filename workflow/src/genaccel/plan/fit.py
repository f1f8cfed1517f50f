"""Whether a job fits on a device, and what would make it fit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from genaccel.plan.demand import Demand
from genaccel.plan.devices import GIB, KnownDevice

CONTEXT_BYTES = int(0.6 * GIB)
"""What lies beside the allocator: the device's context and cuBLAS's workspace; on a CPU the process itself."""

UNCERTAINTY = 0.05
"""Share of a predicted peak that may come on top, by the allocator's rounding and fragmentation."""

FUSED = {"precision": "bf16", "kernels": "fused"}

Verdict = Literal["fits", "tight", "out of memory", "unsupported"]

FAILS: set[Verdict] = {"out of memory", "unsupported"}


def verdict(demand: Demand, device: KnownDevice) -> Verdict:
    """``tight`` is what fits by the prediction alone, but not with its uncertainty."""
    if any(need in device.lacks for need in demand.needs):
        return "unsupported"
    needed = demand.memory_bytes + CONTEXT_BYTES
    if needed > device.memory_bytes:
        return "out of memory"
    return "tight" if needed + UNCERTAINTY * demand.memory_bytes > device.memory_bytes else "fits"


def fault(demand: Demand, device: KnownDevice, others: list[KnownDevice]) -> str | None:
    """Why the job cannot run there and what to change; None where it can.

    Args:
        others: devices to name where the job fits.
    """
    found = verdict(demand, device)
    key = f"models.{demand.model}.{demand.stage}"
    if found == "unsupported":
        lacking = next(device.lacks[need] for need in demand.needs if need in device.lacks)
        text = f"{demand.job} cannot run on {device.name}: {lacking}; set {key}: {_variant(demand, 'fp32_strict')}"
        then = fault(dataclasses.replace(demand, precision="fp32", kernels="stock"), device, others)
        return f"{text}. Even so: {then}" if then else text
    if found != "out of memory":
        return None
    remedies = [f"{key}: {text} ({_gib(changed.memory_bytes)})" for text, changed in _remedies(demand, device)]
    # Training on a CPU for want of a GPU's memory is no advice.
    larger = [other.name for other in others if other.name != "cpu" and verdict(demand, other) == "fits"]
    lines = [
        f"{demand.job} does not fit on {device.name}: predicted peak {_gib(demand.memory_bytes)} "
        f"({demand.arithmetic}, batch {demand.batch}, {'x'.join(map(str, demand.network.shape))}) and "
        f"{_gib(CONTEXT_BYTES)} for the device's context, of {_gib(device.memory_bytes)}.",
        f"      It would fit with (predicted): {'; or '.join(remedies)}."
        if remedies
        else "      Neither a smaller batch nor another variant nor gradient checkpointing makes it fit there.",
    ]
    if larger:
        lines.append(f"      As it is it fits on {', '.join(larger)}.")
    return "\n".join(lines)


def _remedies(demand: Demand, device: KnownDevice) -> list[tuple[str, Demand]]:
    """Settings with which the job fits: the largest batch and each other change, else several together."""
    options: list[dict[str, object]] = []
    fused = demand.kernels == "fused"
    if demand.step == "train" and not demand.gradient_checkpointing and not fused:
        options.append({"gradient_checkpointing": True})
    if demand.precision not in ("bf16", "fp16"):
        options.append({"precision": "bf16"})
    together = {key: value for option in options for key, value in option.items()}
    alone = [*options, FUSED] if _may_fuse(demand) else options
    combined = [{"batch": 1, **option} for option in options if demand.batch > 1]
    combined += [together, {"batch": 1, **together}]
    fitting = [*islice(_fitting(demand, device, _batches(demand, device)), 1), *_fitting(demand, device, alone)]
    return fitting or list(islice(_fitting(demand, device, combined), 2))


def _may_fuse(demand: Demand) -> bool:
    """Whether the fused kernels can take a job over; what they refuse stands in ``train.spec.check_trainable``."""
    plain = not demand.gradient_checkpointing and not demand.network.dropout and demand.devices == 1
    return demand.kernels == "stock" and (demand.step == "denoise" or plain)


def _batches(demand: Demand, device: KnownDevice) -> Iterator[dict[str, object]]:
    """Halves of the batch that may fit, the largest first; memory grows linearly with the batch."""
    if demand.batch == 1:
        return
    least = dataclasses.replace(demand, batch=1).memory_bytes
    each = (demand.memory_bytes - least) / (demand.batch - 1)
    for batch in (demand.batch >> shift for shift in range(1, demand.batch.bit_length())):
        if least + each * (batch - 1) + CONTEXT_BYTES <= device.memory_bytes:
            yield {"batch": batch}


def _fitting(demand: Demand, device: KnownDevice, changes: Iterable[dict[str, object]]) -> Iterator[tuple[str, Demand]]:
    for change in changes:
        changed = dataclasses.replace(demand, **change)
        if verdict(changed, device) in ("fits", "tight"):
            yield _yaml(demand, change), changed


def _yaml(demand: Demand, settings: dict[str, object]) -> str:
    parts = [f"{key}: {str(value).lower()}" for key, value in settings.items() if key not in FUSED]
    if "precision" in settings:
        name = "fast" if settings.get("kernels") == "fused" else str(settings["precision"])
        parts.append(_variant(demand, name).strip("{}"))
    return f"{{{', '.join(parts)}}}"


def _variant(demand: Demand, name: str) -> str:
    """Training has one variant, sampling a list."""
    return f"{{variant: {name}}}" if demand.step == "train" else f"{{variants: [{name}]}}"


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
