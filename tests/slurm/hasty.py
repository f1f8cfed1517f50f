"""Snakemake as it is, except that it asks for the state of its jobs twice a second.

The SLURM executor waits ten seconds longer after each question that brought nothing new, which suits jobs of hours.
"""

from __future__ import annotations

import asyncio
import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor


async def sleep(executor: RemoteExecutor) -> None:
    await asyncio.sleep(0.5)


RemoteExecutor.sleep = sleep
main(sys.argv[1:])
