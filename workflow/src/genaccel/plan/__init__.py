"""What a study will run, need and cost, said before anything is submitted: ``genaccel plan``."""

from __future__ import annotations

from genaccel.config.compose import check_files, check_splits, compose, data_job
from genaccel.config.reading import read_yaml
from genaccel.plan.dag import needed_jobs
from genaccel.plan.devices import find_device, known_devices, local_device
from genaccel.plan.disk import data_sets
from genaccel.plan.report import Plan, devices_table, faults, jobs_table, memory_table, notes, too_long
from genaccel.spec import SpecError


def print_plan(config_path: str, device: str | None = None) -> None:
    """Prints jobs, disk, device memory and device hours of what would run; nothing is run.

    Args:
        device: a name in ``devices.csv``; None takes the GPU of this machine, or without one shows every device.

    Raises:
        SpecError: a fault in the study, or a job that cannot run on the device, by its memory or precision. With no
            device to tell by, one that can run on none.
    """
    config = compose(read_yaml(config_path))
    chosen = find_device(device) if device else local_device(config.device)
    everywhere = [d for d in known_devices().values() if d.name != "cpu" or config.device != "cuda"]
    for name in config.data:
        data_job(config, name)  # says what to do where there is no sample table
    check_splits(config)
    check_files(config)
    plan = Plan(config, needed_jobs(config_path), data_sets(config), [chosen] if chosen else everywhere)
    print(f"Plan of study `{config.study}` ({config_path}). Nothing has been run or submitted.\n")
    if not plan.jobs:
        print("Nothing would run: everything is up to date.")
        return
    print(jobs_table(plan))
    if not any(plan.demands.values()):
        return
    print(f"\nPredicted peak memory of one device\n\n{memory_table(plan)}")
    print(f"\nWhat fits, and device hours\n\n{devices_table(plan)}\n")
    print("\n".join([*too_long(plan), *notes(plan)]), flush=True)
    if found := faults(plan):
        raise SpecError("\n".join(found))
