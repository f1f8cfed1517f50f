"""A plan's tables: jobs, device memory, device hours; and what stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from genaccel.config.compose import Config
from genaccel.plan.dag import Job
from genaccel.plan.demand import Demand, demand
from genaccel.plan.devices import KnownDevice, known_devices
from genaccel.plan.disk import DataSet, disk_bytes
from genaccel.plan.fit import FAILS, fault, verdict
from genaccel.plan.here import cpu_seconds
from genaccel.plan.rates import Estimate, step_seconds
from genaccel.plan.table import gib, hours, minutes, text_table

RULES = ("train_model", "sample_volumes")
"""Rules whose memory and time on a device are predicted."""


@dataclass(frozen=True)
class Plan:
    """What would run, and where it may: the device that is asked for, or all that are known."""

    config: Config
    jobs: Sequence[Job]
    sets: Mapping[str, DataSet]
    devices: Sequence[KnownDevice]

    def dataset(self, job: Job) -> DataSet | None:
        """The data set that a job belongs to."""
        model = job.names.get("model")
        name = self.config.models[model].data if model else job.names.get("dataset")
        return self.sets.get(name) if name else None

    @cached_property
    def demands(self) -> dict[str, list[Demand]]:
        """What the jobs ask of each device, in the order of the jobs."""
        pairs = [(job, dataset) for job in self.jobs if (dataset := self.dataset(job))]
        return {
            device.name: [d for job, dataset in pairs if (d := demand(job, dataset.splits, device.name))]
            for device in self.devices
        }


def jobs_table(plan: Plan) -> str:
    """One line a rule: jobs, what one of them asks of the host, and what they all leave on disk."""
    rows, total = [], 0.0
    for rule in dict.fromkeys(job.rule for job in plan.jobs):
        of_rule = [job for job in plan.jobs if job.rule == rule]
        disk = sum(disk_bytes(job, dataset) for job in of_rule if (dataset := plan.dataset(job)))
        total += disk
        rows.append(
            [
                rule,
                str(len(of_rule)),
                str(max(job.gpus for job in of_rule) or "-"),
                str(max(job.threads for job in of_rule)),
                gib(max(job.memory_bytes for job in of_rule)),
                minutes(max(job.runtime_min for job in of_rule)),
                gib(disk),
            ]
        )
    rows.append(["total", str(len(plan.jobs)), "", "", "", "", gib(total)])
    header = ["rule", "jobs", "GPUs", "threads", "host memory", "time limit", "disk"]
    return text_table(header, rows, right=range(1, len(header)))


def memory_table(plan: Plan) -> str:
    """One line for each job that trains or samples."""
    rows = [
        [
            d.job,
            "x".join(map(str, d.network.shape)),
            d.arithmetic,
            str(d.batch),
            gib(d.memory_bytes),
            f"{d.flops / 1e12:.3g}",
            f"{d.steps:,}",
        ]
        for d in plan.demands[plan.devices[0].name]
    ]
    header = ["job", "grid", "arithmetic", "batch", "peak memory", "TFLOP a step", "steps"]
    return text_table(header, rows, right=range(3, len(header)))


def devices_table(plan: Plan) -> str:
    """One line a device: what fits, and the hours of each rule with where they come from."""
    rows = []
    for device in plan.devices:
        demands = plan.demands[device.name]
        verdicts = {verdict(d, device) for d in demands}
        fits = "no" if verdicts & FAILS else "tight" if "tight" in verdicts else "yes"
        cells = [_cell(device, [d for d in demands if d.rule == rule]) for rule in RULES]
        runnable = [e for d in demands if verdict(d, device) not in FAILS and (e := _total(d, device))]
        basis = "; ".join(dict.fromkeys(e.basis for e in sorted(runnable, key=lambda e: len(e.basis))))
        rows.append([device.name, gib(device.memory_bytes), fits, *cells, basis])
    return text_table(["device", "memory", "fits", *RULES, "hours are"], rows, right=(1,))


def _cell(device: KnownDevice, demands: Sequence[Demand]) -> str:
    """Device hours of all jobs of a rule, or what stands against one of them."""
    if not demands:
        return "-"
    if unsupported := [d for d in demands if verdict(d, device) == "unsupported"]:
        return f"unsupported: {next(need for need in unsupported[0].needs if need in device.lacks)}"
    if failing := [d.model for d in demands if verdict(d, device) == "out of memory"]:
        return f"out of memory: {', '.join(dict.fromkeys(failing))}"
    estimates = [_total(d, device) for d in demands]
    known = [estimate for estimate in estimates if estimate]
    if len(known) < len(estimates):
        return "unknown"
    return hours(Estimate(sum(e.low for e in known), sum(e.high for e in known), ""))


def _total(demand: Demand, device: KnownDevice) -> Estimate | None:
    """Device time of a job, that of all its devices together."""
    if device.name == "cpu":
        one: Estimate | None = cpu_seconds(demand.network, demand.precision, demand.flops)
    else:
        one = step_seconds(device, demand.step, demand.precision, demand.flops, demand.operations, demand.kernels)
    return one.times(demand.steps * demand.devices) if one else None


def too_long(plan: Plan) -> Iterator[str]:
    """Jobs that their rule's time limit would end, on the one device that is asked for."""
    if len(plan.devices) > 1:
        return
    limits = {str(job): job.runtime_min for job in plan.jobs}
    for d in plan.demands[plan.devices[0].name]:
        total, limit = _total(d, plan.devices[0]), limits.get(d.job, 0)
        if total and limit and total.high / d.devices > limit * 60:
            yield (
                f"{d.job} takes {hours(total.times(1 / d.devices))}, with a time limit of {minutes(limit)}: raise that "
                f"(--set-resources {d.rule}:runtime=MINUTES), or run again to go on where it was ended."
            )


def notes(plan: Plan) -> Iterator[str]:
    """What the numbers leave out."""
    yield "Memory is that of PyTorch's allocator; 0.6 GiB for the device's context come on top. `tight` is within 5 %."
    yield "Disk is at its peak, a checkpoint more than is kept included; figures and tables are left out."
    yield "Hours are those of the networks' steps; files, and what devices say to each other, come on top."
    yield "Training counts from its first step, though it goes on from a checkpoint where there is one."
    yield "Small volumes wait for the host that starts their operations, which ranges have as their floor."
    if others := sorted({job.rule for job in plan.jobs if job.gpus and job.rule not in RULES}):
        yield f"Neither memory nor hours are predicted for {', '.join(others)}, which take a device too."


def faults(plan: Plan) -> list[str]:
    """What cannot run on the device that is asked for; with several to choose from, what can run on none."""
    if len(plan.devices) == 1:
        device, others = plan.devices[0], list(known_devices().values())
        return [text for d in plan.demands[device.name] if (text := fault(d, device, others))]
    largest = max(range(len(plan.devices)), key=lambda index: plan.devices[index].memory_bytes)
    nowhere = [
        asked[largest]
        for asked in zip(*(plan.demands[device.name] for device in plan.devices), strict=True)
        if all(verdict(d, device) in FAILS for d, device in zip(asked, plan.devices, strict=True))
    ]
    return [text for d in nowhere if (text := fault(d, plan.devices[largest], []))]
