"""Starts a module in several processes, one a device: on this machine, or on every node of a SLURM job.

``launch`` is what a stage calls. On one machine it becomes torchrun. In a job of several nodes it becomes `srun`, which
starts this module once a node (``python -m genaccel.launch``), which becomes torchrun there; all meet on the first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence

from genaccel.allocation import Allocation, address, find_allocation
from genaccel.command import stage_errors
from genaccel.spec import SpecError

TORCHRUN = (sys.executable, "-m", "torch.distributed.run")


def launch(module: str, argv: Sequence[str], processes: int) -> None:
    """Replaces this process where several are asked for and torchrun has not started it yet.

    Args:
        module: to start, as ``python -m`` takes it.
        argv: its arguments.
        processes: in all.

    Raises:
        SpecError: they cannot be shared out among the job's nodes, or there is no srun to start them.
    """
    if processes == 1 or launched():
        return
    allocation = find_allocation()
    if allocation is None or len(allocation.hosts) == 1:
        _become([*TORCHRUN, "--standalone", f"--nproc-per-node={processes}", "-m", module, *argv])
    else:
        _become([*srun(allocation), *node_command(module, argv, allocation, processes)])


def launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def srun(allocation: Allocation) -> list[str]:
    """The start of a command that runs once on every node of a job."""
    if shutil.which("srun") is None:
        raise SpecError(
            f"job {allocation.job} has {len(allocation.hosts)} nodes, but there is no srun in PATH to start processes "
            "on them; put it there, or ask for one node"
        )
    nodes = len(allocation.hosts)
    # All said again: a step that has lost SLURM's variables would take the defaults, one core a task among them. One
    # node's end is everyone's, who would wait for it otherwise. And where this command runs in a step itself, that one
    # holds the same resources.
    options = [f"--jobid={allocation.job}", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    return ["srun", *options, "--cpu-bind=none", "--kill-on-bad-exit=1", "--overlap"]


def node_command(module: str, argv: Sequence[str], allocation: Allocation, processes: int) -> list[str]:
    """What srun starts on a node: this module, which finds the node's rank and becomes torchrun."""
    meeting = ["--nodes", len(allocation.hosts), "--each", allocation.share(processes)]
    meeting += ["--host", address(allocation.hosts[0]), "--port", allocation.port, "--job", allocation.job]
    return [sys.executable, "-m", "genaccel.launch", *map(str, meeting), module, *argv]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m genaccel.launch", description="Becomes torchrun on one node.")
    parser.add_argument("--nodes", type=int, required=True, help="nodes of the job")
    parser.add_argument("--each", type=int, required=True, help="processes a node")
    parser.add_argument("--host", required=True, help="the first node, where all meet")
    parser.add_argument("--port", type=int, required=True, help="where it listens")
    parser.add_argument("--job", required=True, help="the job's number")
    parser.add_argument("module", help="to start, as `python -m` takes it")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    args = parser.parse_args(argv)
    with stage_errors("launch"):
        rank = os.environ.get("SLURM_NODEID", os.environ.get("SLURM_PROCID"))
        if rank is None:
            raise SpecError("neither SLURM_NODEID nor SLURM_PROCID is set: srun starts this, one task a node")
        # Ranks by node and then by device: a node's processes are neighbours in every ring.
        place = [f"--nnodes={args.nodes}", f"--node-rank={rank}", f"--nproc-per-node={args.each}"]
        meeting = [f"--master-addr={args.host}", f"--master-port={args.port}", f"--rdzv-id={args.job}"]
        _become([*TORCHRUN, *place, *meeting, "-m", args.module, *args.arguments])


def _become(command: Sequence[str]) -> None:
    sys.stdout.flush()
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
