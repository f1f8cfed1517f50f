"""One job's needs, said in this cluster's words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from genaccel.site.spec import REQUEST, SITE_FILE, DevicePlace, Place, Site
from genaccel.spec import SpecError, nearest


@dataclass(frozen=True)
class Need:
    """What a rule asks for.

    Args:
        rule: its name, for messages.
        devices: accelerators.
        model: device model, or "" for the profile's.
        mem_mb, runtime, threads: memory of the host in MB, minutes, cores; None where the rule says nothing.
        attempt: 1 for the first, one more with each retry.
    """

    rule: str
    devices: int = 0
    model: str = ""
    mem_mb: int | None = None
    runtime: int | None = None
    threads: int = 1
    attempt: int = 1


def place(need: Need, site: Site, profile: str) -> dict[str, Any]:
    """Resources of the SLURM executor for a job; None takes one away.

    Memory and time grow with each attempt, up to what the partition grants.

    Raises:
        SpecError: the device has no row, or its partition cannot hold the job.
    """
    where = _row(need, site, profile)
    limits = where.limits
    for key, asked, unit in (
        ("devices", need.devices, "devices"),
        ("mem_mb", need.mem_mb, "MB"),
        ("runtime", need.runtime, "minutes"),
    ):
        most = getattr(limits, key)
        if most is not None and asked is not None and asked > most:
            raise SpecError(
                f"{need.rule} asks for {asked} {unit}, and partition {where.partition} grants {most} "
                f"({SITE_FILE}: limits.{key}); name another partition there, or lower it for this rule under "
                "set-resources in the profile"
            )
    return {
        "slurm_partition": where.partition,
        "slurm_account": where.account or site.account,
        "constraint": where.constraint,
        "qos": where.qos,
        "mem_mb": _grown(need.mem_mb, need.attempt, limits.mem_mb),
        "runtime": _grown(need.runtime, need.attempt, limits.runtime),
        "_cores": min(need.threads, limits.threads or need.threads),
        **({"tmpdir": os.path.expandvars(site.scratch)} if site.scratch else {}),
        **_devices(need, where),
    }


def _row(need: Need, site: Site, profile: str) -> Place:
    if not need.devices:
        return site.cpu
    model = need.model or site.default_device(profile)
    if model not in site.devices:
        raise SpecError(
            f"{need.rule} asks for the device {model!r}, which has no partition in {SITE_FILE}; "
            f"add a row under devices there, or name another device; {nearest(model, site.devices)}"
        )
    return site.devices[model]


def _devices(need: Need, where: Place) -> dict[str, Any]:
    # With `gpu: 0` a model that stayed would become `--gpus=MODEL:0`.
    found: dict[str, Any] = {"gpu": 0, "gpu_model": None, "gres": None, "slurm_extra": where.extra}
    if not isinstance(where, DevicePlace) or not need.devices:
        return found
    form = REQUEST.fullmatch(where.request)
    assert form, where.request
    option, kind = where.request.format(n=need.devices), form["model"] or form["type"] or ""
    if "-" in kind:
        # The executor refuses a dash in a model or gres; this option says the same and passes.
        return found | {"slurm_extra": " ".join(filter(None, [f"--gpus-per-node={kind}:{need.devices}", where.extra]))}
    if form["gres"]:
        return found | {"gres": option.removeprefix("--gres=")}
    return found | {"gpu": need.devices, "gpu_model": form["model"]}


def _grown(asked: int | None, attempt: int, most: int | None) -> int | None:
    if not isinstance(asked, int) or isinstance(asked, bool):
        return asked
    return min(asked * attempt, most or asked * attempt)
