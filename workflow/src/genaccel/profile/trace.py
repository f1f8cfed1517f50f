"""Records steps with torch.profiler and keeps the Chrome trace."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from genaccel.atomic import atomic_file
from genaccel.device import Device
from genaccel.profile.spec import Phase
from genaccel.profile.timeline import DEVICE, MARK, Step, device_steps, host_steps

Trace = dict[str, Any]


def record(step: Callable[[], object], phase: Phase, steps: int, device: Device) -> Trace:
    """The trace of some steps, one more than counts: the first holds the start of the profiler.

    Steps follow each other as in a real run: the host waits for the device at the end alone.
    """
    with torch.profiler.profile(activities=torch.profiler.supported_activities()) as profiler:
        for _ in range(steps + 1):
            with torch.profiler.record_function(MARK + phase):
                step()
        device.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(path))
        # Names of kernels may hold bytes of no known encoding.
        return json.loads(path.read_text(errors="replace"))


def steps_of(trace: Trace) -> tuple[list[Step], str]:
    """The counted steps, and what they consist of: ``kernels``, or ``operators`` where no device was used."""
    events = trace["traceEvents"]
    if any(event.get("cat") in DEVICE for event in events):
        return device_steps(events), "kernels"
    return host_steps(events), "operators"


def joined(traces: Sequence[Trace]) -> Trace:
    """One trace of several, which were recorded one after the other; of none, an empty one."""
    return {
        **(traces[0] if traces else {}),
        "traceEvents": [event for trace in traces for event in trace["traceEvents"]],
    }


def write_trace(path: Path, trace: Trace) -> None:
    """Writes a trace that chrome://tracing and Perfetto open, ``.json.gz``; the same trace gives the same bytes."""
    with atomic_file(path) as partial:
        partial.write_bytes(gzip.compress(json.dumps(trace).encode(), mtime=0))
