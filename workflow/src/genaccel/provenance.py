"""Where a measurement came from: code, software, machine and job."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from genaccel.device import Device

PACKAGES = ("torch", "numpy", "monai", "nibabel", "scipy", "snakemake", "triton", "deepbet", "nilearn")
SLURM = ("SLURM_JOB_ID", "SLURM_JOB_PARTITION", "SLURM_JOB_NODELIST", "SLURM_CLUSTER_NAME")


CODE = ("--", ":(top)", ":(top,exclude)profiles", ":(top,exclude)config")
"""What a commit must hold for a result to be its: settings stand in the run itself, and profiles change none."""


def provenance(device: Device, code: str, *, precision: dict[str, Any], **parallelism: Any) -> dict[str, Any]:
    """All that tells two measurements of one workload apart.

    Args:
        device: the opened device.
        code: the rule's ``params.code``.
        precision: the effective state that ``Device.apply`` read back.
        parallelism: processes, micro-batch, and the like.
    """
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    commit = _git("rev-parse", "HEAD")
    return {
        "code": code,
        "commit": commit,
        "dirty": None if commit is None else bool(_git("status", "--porcelain", "--untracked-files=no", *CODE)),
        "python": platform.python_version(),
        "packages": versions,
        "environment_sha256": _environment_sha256(),
        "torch_build": torch.__version__,
        "device": device.describe(),
        "precision": precision,
        "parallelism": parallelism,
        "host": {"name": socket.gethostname(), "system": platform.platform(), "cpus": os.cpu_count()},
        "slurm": {name: os.environ[name] for name in SLURM if name in os.environ},
        "command": sys.argv[0].rsplit("/", 2)[-2:],
    }


@functools.cache
def _environment_sha256() -> str:
    """Hash over name and version of everything installed: two runs with one hash had the same software."""
    installed = sorted(f"{d.metadata['Name']}=={d.version}".lower() for d in metadata.distributions())
    return hashlib.sha256("\n".join(installed).encode()).hexdigest()


def _git(*command: str) -> str | None:
    """Git's answer about this source tree; None outside a checkout."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(["git", "-C", here, *command], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
