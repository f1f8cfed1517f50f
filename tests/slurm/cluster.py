"""A whole SLURM cluster of fake nodes on this machine, as root and without systemd: ``cluster.py start|stop FOLDER``.

Several slurmd share one host, each with its own port. Devices are clones of /dev/null: slurmd asks for device nodes.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

NEEDED = ("slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "munged")
WRAPPED = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "srun", "sacct", "sacctmgr", "sshare")
PATIENCE_S = 30

# Node, partition, cores, MB, gres and its count. Counts are enforced; memory by polling.
NODES = (
    ("cpu1", "cpu", 32, 128_000, ""),
    ("cpu2", "cpu", 32, 128_000, ""),
    ("v100n1", "gpu-v100", 16, 64_000, "gpu:v100:1"),
    ("a100n1", "gpu-a100", 128, 1_000_000, "gpu:a100:8"),
    ("h100n1", "gpu-h100", 128, 2_000_000, "gpu:h100:8"),
    ("h100n2", "gpu-h100", 128, 2_000_000, "gpu:h100:8"),
    ("gaudi1n1", "gaudi1", 96, 768_000, "hpu:gaudi1:8"),
    ("gaudi2n1", "gaudi2", 96, 1_000_000, "hpu:gaudi2:8"),
    ("gaudi3n1", "gaudi3", 96, 1_000_000, "hpu:gaudi3:8"),
)

# MinJobAge: without accounting, squeue must remember a job until Snakemake has asked.
# OverMemoryKill: the one way to enforce memory without cgroups.
SLURM_CONF = """\
ClusterName=genaccel
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CredType=cred/munge
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd-%n.log
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=2,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MailProg=/bin/true
InactiveLimit=0
MinJobAge=3600
KillWait=5
JobRequeue=0
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill,UsePss
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
GresTypes=gpu,hpu
PropagateResourceLimits=NONE
NodeName=DEFAULT State=UNKNOWN Sockets=1 ThreadsPerCore=1
{nodes}
PartitionName=DEFAULT State=UP MaxTime=1-00:00:00 DefaultTime=00:10:00 OverSubscribe=NO DefMemPerCPU=1000
{partitions}
"""


def missing() -> str | None:
    """Why there can be no cluster here; None where there can."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    lacking = [name for name in NEEDED if not shutil.which(name, path=path)]
    if lacking:
        return (
            f"a SLURM of one's own needs {', '.join(lacking)}: apt-get install --no-install-recommends slurm-wlm munge"
        )
    if os.geteuid() != 0:
        return "a SLURM of one's own needs root"
    return None


def environment(root: Path) -> dict[str, str]:
    """What commands need to find the cluster in ``root``."""
    return {"SLURM_CONF": f"{root}/etc/slurm.conf", "PATH": f"{root}/bin:{os.environ['PATH']}:/usr/sbin"}


def start(root: Path) -> None:
    """Starts the cluster and waits until every node is idle."""
    _write(root)
    env = {**os.environ, **environment(root)}

    def daemon(*command: str) -> None:
        subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    munge = root / "munge"
    daemon(
        "munged", f"--key-file={munge}/key", f"--socket={munge}/socket", f"--pid-file={root}/munged.pid",
        f"--seed-file={munge}/seed", f"--log-file={root}/log/munged.log", "--num-threads=2",
    )  # fmt: skip
    daemon("slurmctld")
    for name, *_ in NODES:
        daemon("slurmd", "-N", name)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        states = subprocess.run(["sinfo", "-hNo", "%N %T"], env=env, capture_output=True, text=True, check=False).stdout
        if len({line for line in states.splitlines() if line.endswith(" idle")}) == len(NODES):
            return
        time.sleep(0.1)
    stop(root)
    raise RuntimeError(f"the cluster was not up after {PATIENCE_S} s; see {root}/log\n{states}")


def stop(root: Path) -> None:
    """Cancels all jobs and ends the daemons that ``start`` left in ``root``."""
    env = {**os.environ, **environment(root)}
    if _alive(root / "slurmctld.pid"):
        subprocess.run(["scancel", "--user=root", "--signal=KILL", "--full"], env=env, check=False, capture_output=True)
        subprocess.run(["scancel", "--user=root"], env=env, check=False, capture_output=True)
        time.sleep(0.3)
    for pattern in ("slurmd-*.pid", "slurmctld.pid", "munged.pid"):
        files = [path for path in root.glob(pattern) if _alive(path)]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for path in files:
                if pid := _alive(path):
                    os.kill(pid, number)
            until = time.monotonic() + 5
            while any(map(_alive, files)) and time.monotonic() < until:
                time.sleep(0.05)
    _kill_strays(root)


def _kill_strays(root: Path) -> None:
    """Ends what jobs left: processes on a node that was set down can lose their slurmd."""
    mark = f"SLURM_CONF={root}/etc/slurm.conf".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path("/proc", entry, "environ").read_bytes().split(b"\0")
            # A shell in which somebody looks at the cluster has the first, and is in no job of it.
            if mark in words and any(word.startswith(b"SLURM_JOB_ID=") for word in words):
                os.kill(int(entry), signal.SIGKILL)


def _alive(pid_file: Path) -> int | None:
    """The process of a pid file, unless it has ended, is a zombie, or the number is another program's by now."""
    try:
        pid = int(pid_file.read_text())
        command, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except (OSError, ValueError):
        return None
    return pid if pid_file.stem.startswith(command) and rest.split()[0] != "Z" else None


def _free_ports(number: int) -> list[int]:
    # All open at once, so that no two are the same; another cluster may run beside this one.
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _write(root: Path) -> None:
    for folder in ("etc", "munge", "state", "log", "dev", "bin", *(f"spool-{name}" for name, *_ in NODES)):
        (root / folder).mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    (root / "munge").chmod(0o711)
    key = root / "munge/key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    for kind in ("gpu", "hpu"):
        for number in range(8):
            path = root / f"dev/{kind}{number}"
            path.unlink(missing_ok=True)
            os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
    host = socket.gethostname().split(".")[0]
    nodes, partitions, gres = [], {}, ["AutoDetect=off"]
    controller, *ports = _free_ports(len(NODES) + 1)
    for port, (name, partition, cores, memory, devices) in zip(ports, NODES, strict=True):
        nodes.append(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CoresPerSocket={cores} "
            f"RealMemory={memory}" + (f" Gres={devices}" if devices else "")
        )
        partitions.setdefault(partition, []).append(name)
        if devices:
            kind, model, count = devices.split(":")
            files = f"{kind}[0-{int(count) - 1}]" if int(count) > 1 else f"{kind}0"
            gres.append(f"NodeName={name} Name={kind} Type={model} File={root}/dev/{files}")
    etc = root / "etc"
    (etc / "gres.conf").write_text("\n".join(gres) + "\n")
    # SLURM 22.05 loads a cgroup plugin whatever is asked of it; this one does nothing until it is used.
    (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    lines = [
        f"PartitionName={name} Nodes={','.join(members)}" + (" Default=YES" if name == "cpu" else "")
        for name, members in partitions.items()
    ]
    (etc / "slurm.conf").write_text(
        SLURM_CONF.format(host=host, port=controller, root=root, nodes="\n".join(nodes), partitions="\n".join(lines))
    )
    for name in WRAPPED:
        if program := shutil.which(name, path="/usr/bin:/usr/local/bin"):
            # The executor's job step drops every SLURM_ variable, SLURM_CONF with them.
            wrapper = root / "bin" / name
            wrapper.write_text(f'#!/bin/sh\nSLURM_CONF={etc}/slurm.conf exec {program} "$@"\n')
            wrapper.chmod(0o755)


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]](Path(sys.argv[2]).resolve())
