"""The nodes that SLURM has given to this job, and this process's place among them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from genaccel.spec import SpecError

PORTS = range(20_000, 30_000)
"""Below the ports that Linux hands out itself."""


@dataclass(frozen=True)
class Allocation:
    """A job's nodes.

    Attributes:
        job: SLURM's number of it.
        hosts: names of its nodes, in SLURM's order.
    """

    job: str
    hosts: tuple[str, ...]

    @property
    def port(self) -> int:
        """A port on the first host: one a job, the same for all that ask."""
        return PORTS[int(re.sub(r"\D", "", self.job) or 0) % len(PORTS)]

    def share(self, processes: int) -> int:
        """Processes a node.

        Raises:
            SpecError: they cannot be shared out evenly.
        """
        nodes = len(self.hosts)
        if processes % nodes:
            raise SpecError(
                f"{processes} processes cannot be shared out evenly among the {nodes} nodes of job {self.job} "
                f"({', '.join(self.hosts)}); ask for a multiple of {nodes}, or for other nodes"
            )
        return processes // nodes


def find_allocation() -> Allocation | None:
    """The allocation of this job; None outside of SLURM.

    Where a job step has lost SLURM's variables, all but the job's number, `scontrol` tells.

    Raises:
        SpecError: it does not tell.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        return None
    nodes = os.environ.get("SLURM_JOB_NODELIST") or os.environ.get("SLURM_NODELIST") or _nodes_of(job)
    return Allocation(job, tuple(_expanded(nodes)))


def address(node: str) -> str:
    """Where a node is reached: SLURM's name of it need not be known to the others' resolvers."""
    found = re.search(r"(?<!\w)NodeAddr=(\S+)", _scontrol("--oneliner", "show", "node", node))
    return found.group(1) if found else node


def _nodes_of(job: str) -> str:
    shown = _scontrol("--oneliner", "show", "job", job)
    found = re.search(r"(?<!\w)NodeList=(\S+)", shown)
    if not found or found.group(1) == "(null)":
        raise SpecError(f"`scontrol show job {job}` names no nodes; is the job over?")
    return found.group(1)


def _expanded(nodes: str) -> list[str]:
    """``gpu[1-2]`` -> ``gpu1``, ``gpu2``; a plain name needs no SLURM."""
    return _scontrol("show", "hostnames", nodes).split() if re.search(r"[\[,]", nodes) else [nodes]


def _scontrol(*arguments: str) -> str:
    try:
        done = subprocess.run(["scontrol", *arguments], capture_output=True, text=True, timeout=60, check=True)
    except FileNotFoundError:
        raise SpecError(
            f"SLURM_JOB_ID={os.environ['SLURM_JOB_ID']} is set, but there is no scontrol in PATH to ask for the job's "
            "nodes; put it there, or set SLURM_JOB_NODELIST"
        ) from None
    except subprocess.CalledProcessError as error:
        raise SpecError(f"`scontrol {' '.join(arguments)}` failed: {_last(error.stderr)}") from None
    except subprocess.TimeoutExpired:
        raise SpecError(f"`scontrol {' '.join(arguments)}` did not answer within a minute") from None
    return done.stdout


def _last(text: str) -> str:
    lines: Sequence[str] = text.strip().splitlines() or ["no message"]
    return lines[-1]
