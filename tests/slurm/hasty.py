"""Snakemake as it is, except that it asks for the state of its jobs twice a second; ``run ...``: `genaccel run` on it.

The SLURM executor waits ten seconds longer after each question that brought nothing new, which suits jobs of hours.
"""

from __future__ import annotations

import asyncio
import sys


def snakemake() -> None:
    from snakemake.cli import main
    from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

    async def sleep(executor: RemoteExecutor) -> None:
        await asyncio.sleep(0.5)

    RemoteExecutor.sleep = sleep
    main(sys.argv[1:])


def run() -> None:
    from genaccel import run as module
    from genaccel.cli import main

    module.SNAKEMAKE = (sys.executable, __file__)
    main(sys.argv[1:])


if sys.argv[1] == "run":
    run()
else:
    snakemake()
