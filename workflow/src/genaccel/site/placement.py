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
        nodes: to share them out among; None for as few as hold them.
        extra: options of sbatch instead of the site file's; None where the rule says nothing, as in what follows.
        mem_mb, runtime, threads: memory of the host in MB, minutes, cores; the first and the last a node.
        attempt: 1 for the first, one more with each retry.
    """

    rule: str
    devices: int = 0
    model: str = ""
    nodes: int | None = None
    extra: str | None = None
    mem_mb: int | None = None
    runtime: int | None = None
    threads: int = 1
    attempt: int = 1


def place(need: Need, site: Site, profile: str) -> dict[str, Any]:
    """Resources of the SLURM executor for a job; None takes one away.

    Memory and time grow with each attempt, up to what the partition grants.

    Raises:
        SpecError: the device has no row, its partition cannot hold the job, or a need is no number.
    """
    _check_numbers(need)
    where = _row(need, site, profile)
    limits = where.limits
    for key, asked, unit in (
        ("devices", need.devices, "devices"),
        ("mem_mb", need.mem_mb, "MB"),
        ("runtime", need.runtime, "minutes"),
    ):
        most = getattr(limits, key)
        if most is not None and isinstance(asked, int | float) and asked > most:
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
        **({"tmpdir": _scratch(site.scratch)} if site.scratch else {}),
        **_devices(need, where),
    }


def _check_numbers(need: Need) -> None:
    for key, asked, least in (
        ("gpu", need.devices, 0),
        ("nodes", need.nodes, 1),
        ("mem_mb", need.mem_mb, 1),
        ("runtime", need.runtime, 1),
        ("threads", need.threads, 1),
    ):
        # What Snakemake gives before there are the inputs that a size hangs on.
        if asked is None or str(asked) == "<TBD>":
            continue
        kinds = int | float if key in ("mem_mb", "runtime") else int
        if isinstance(asked, bool) or not isinstance(asked, kinds) or asked < least:
            where = "set-threads" if key == "threads" else "set-resources"
            raise SpecError(
                f"{need.rule} has {key} {asked!r}; give it a whole number from {least} under {where} in the profile"
            )


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
    extra = where.extra if need.extra is None else need.extra
    # With `gpu: 0` a model that stayed would become `--gpus=MODEL:0`.
    found: dict[str, Any] = {"gpu": 0, "gpu_model": None, "gres": None, "slurm_extra": extra, **_nodes(need, where)}
    if not isinstance(where, DevicePlace) or not need.devices:
        return found
    form = REQUEST.fullmatch(where.request)
    assert form, where.request
    several = found["mpi"] is not None
    count = need.devices // (found["nodes"] if several else 1)
    option, kind = where.request.format(n=count), form["model"] or form["type"] or ""
    # The executor refuses a dash in a model or gres, and `--gpus` counts a job's devices, of which SLURM might put most
    # on one of its nodes; this option says the same of each node and passes.
    if "-" in kind or (several and not form["gres"]):
        asked = f"--gpus-per-node={kind}:{count}" if kind else f"--gpus-per-node={count}"
        return found | {"slurm_extra": " ".join(filter(None, [asked, extra]))}
    if form["gres"]:
        return found | {"gres": option.removeprefix("--gres=")}
    return found | {"gpu": count, "gpu_model": form["model"]}


def _nodes(need: Need, where: Place) -> dict[str, Any]:
    """How many nodes, and that the job's command starts once: `genaccel.launch` starts one task on each itself."""
    most = where.limits.devices_per_node or need.devices
    nodes = need.nodes or (-(-need.devices // most) if need.devices else 1)
    if need.devices % nodes or need.devices > nodes * most:
        raise SpecError(
            f"{need.rule} asks for {need.devices} devices, which {nodes} node(s) of partition {where.partition} with "
            f"{most} each cannot share out evenly ({SITE_FILE}: limits.devices_per_node); ask for a multiple of "
            f"{nodes}, at most {nodes * most} (for training, train.processes)"
        )
    if nodes > 1:
        # Without `mpi` the executor would start the whole command as a step on one node. For `gpu` as a gres it makes
        # `tasks` a number of tasks a device, unless that is said to be none.
        return {"nodes": nodes, "mpi": "srun", "tasks": nodes, "tasks_per_gpu": 0}
    # A number of devices alone may come from several nodes; one is always on one.
    return {"nodes": 1 if need.devices > 1 else need.nodes, "mpi": None, "tasks": None, "tasks_per_gpu": None}


def _scratch(text: str) -> str:
    """Where temporary files go on this machine: Snakemake asks once more in each job."""
    path = os.path.expanduser(os.path.expandvars(text))
    # Some are there in SLURM's jobs alone, such as $SLURM_JOB_ID or a site's own $TMPDIR.
    if "$" in path and "SLURM_JOB_ID" in os.environ:
        raise SpecError(
            f"{SITE_FILE}: scratch: {text} names a variable that is not set on {os.uname().nodename}; write the folder "
            "itself, or null for /tmp"
        )
    return path


def _grown(asked: int | None, attempt: int, most: int | None) -> int | None:
    if not isinstance(asked, int) or isinstance(asked, bool):
        return asked
    return min(asked * attempt, most or asked * attempt)
