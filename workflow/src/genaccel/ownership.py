"""Which accelerators a job may use: those that SLURM assigned to it, or those that it locked on a shared machine."""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from genaccel.spec import SpecError

LOCAL_GPU = "local-gpu"
"""The profile under which jobs take devices of their own."""
OWNERSHIP = "GENACCEL_DEVICES"
"""Environment variable that a profile sets for its jobs: ``own`` (take and lock them) or ``assigned`` (by SLURM)."""
LOCKS = "GENACCEL_LOCKS"
"""Environment variable: folder of the locks, one for all users of the machine; /tmp by default."""
POLL_S = 1.0


@dataclass(frozen=True)
class Maker:
    """How a maker's software tells a job which devices are its own.

    Attributes:
        name: of a device, in messages.
        variable: of the environment, naming the devices.
        tool: that shows the driver's view.
        environment: file of the packages that it needs.
        confining: what to ask the cluster's staff for, where SLURM does not set the variable itself.
    """

    name: str
    variable: str
    tool: str
    environment: str
    confining: str = ""


NVIDIA = Maker("GPU", "CUDA_VISIBLE_DEVICES", "nvidia-smi", "envs/cuda.yaml")
GAUDI = Maker(
    "Gaudi", "HABANA_VISIBLE_MODULES", "hl-smi", "envs/gaudi.yaml",
    confining=" for a prolog that sets HABANA_VISIBLE_MODULES to the job's own, which SLURM does not",
)  # fmt: skip

_held: list[IO[str]] = []


def own_devices(kind: str, count: int) -> None:
    """Takes ``count`` NVIDIA GPUs for this process and its children, where the profile says that jobs own theirs.

    Nothing for other kinds of device.

    Waits, and says for whom, while others have them. Must come before the first look at the devices, since it sets
    CUDA_VISIBLE_DEVICES. The kernel lets go of a device once all processes that use it have ended, however they end.

    Raises:
        SpecError: the machine has fewer devices.
    """
    state = os.environ.get(OWNERSHIP)
    if kind not in ("auto", "cuda"):
        return
    if state == "taken":
        # A child: it holds what its parent took, so that the devices stay taken if it outlives the parent.
        _held.extend(_lock(name, fcntl.LOCK_SH) for name in (() if _held else _visible()))
    if state != "own" or not (devices := _visible()):
        return
    if count > len(devices):
        raise SpecError(
            f"{count} GPUs were asked for, and this machine offers {len(devices)} ({', '.join(devices)}); "
            "lower train.processes, or see CUDA_VISIBLE_DEVICES"
        )
    taken = _wait_for(count, devices)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    os.environ[OWNERSHIP] = "taken"


def check_devices(visible: int, asked: int, maker: Maker = NVIDIA) -> None:
    """Says where a job sees other devices than it asked for; silent where no profile assigned any.

    Raises:
        SpecError: it sees more or fewer.
    """
    if os.environ.get(OWNERSHIP) in ("assigned", "taken") and visible != asked:
        seen = os.environ.get(maker.variable, "unset")
        raise SpecError(
            f"this job asked for {asked} device(s) and sees {visible} ({maker.variable} {seen}, host "
            f"{os.uname().nodename}). "
            + (
                f"The cluster does not confine jobs to what they asked for; ask its staff{maker.confining}, or another "
                "`request` in profiles/site.yaml"
                if visible > asked
                else f"Look at `request` in profiles/site.yaml, and at the driver with {maker.tool}"
            )
        )


def check_driver(visible: int, maker: Maker = NVIDIA) -> None:
    """Says where devices were assigned to this job and PyTorch sees none: it would go on on the CPU.

    Raises:
        SpecError: it sees none.
    """
    assigned = os.environ.get(maker.variable, "")
    if os.environ.get(OWNERSHIP) and not visible and assigned not in ("", "-1", "NoDevFiles"):
        raise SpecError(
            f"this job was given the {maker.name}(s) {assigned} on {os.uname().nodename}, and PyTorch sees none; see "
            f"whether {maker.tool} works there and the environment is that of {maker.environment}, or set device: cpu"
        )


def _visible() -> list[str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        # One device under two spellings would be two locks: two jobs on it, or one that waits for itself.
        return list(dict.fromkeys(name for name in map(str.strip, named.split(",")) if name not in ("", "-1")))
    there = [path for path in Path("/dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    return [str(number) for number in range(len(there))]


def _wait_for(count: int, devices: list[str]) -> list[str]:
    told = False
    while True:
        # One job looks at a time: two that each hold half of what they need would wait for ever.
        with _gate():
            found = {name: file for name in devices if (file := _lock(name, fcntl.LOCK_EX | fcntl.LOCK_NB))}
            if len(found) >= count:
                for file in list(found.values())[:count]:
                    # Shared with the children; nobody gets the device while one of them holds it.
                    fcntl.flock(file, fcntl.LOCK_SH)
                    file.truncate(0)
                    file.write(f"{os.getpid()}")
                    file.flush()
                    # Training on several devices replaces this process by torchrun.
                    os.set_inheritable(file.fileno(), True)
                    _held.append(file)
                for file in list(found.values())[count:]:
                    file.close()
                return list(found)[:count]
            for file in found.values():
                file.close()
        if not told:
            others = ", ".join(f"{name} by process {_holder(name)}" for name in devices if name not in found)
            print(f"waiting for {count} of the GPUs {', '.join(devices)}; taken: {others}", file=sys.stderr, flush=True)
            told = True
        time.sleep(POLL_S)


@contextmanager
def _gate() -> Iterator[None]:
    file = _lock("gate", fcntl.LOCK_EX)
    try:
        yield
    finally:
        file.close()


def _path(name: str) -> Path:
    return Path(os.environ.get(LOCKS, "/tmp"), f"genaccel-gpu-{re.sub(r'[^A-Za-z0-9-]', '_', name)}.lock")


def _lock(name: str, how: int) -> IO[str] | None:
    path = _path(name)
    try:
        # In a sticky /tmp the kernel lets nobody "create" another user's file.
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        path.chmod(0o666)
    file = os.fdopen(descriptor, "r+")
    try:
        fcntl.flock(file, how)
    except BlockingIOError:
        file.close()
        return None
    return file


def _holder(name: str) -> str:
    try:
        return _path(name).read_text().strip() or "unknown"
    except OSError:
        return "unknown"
