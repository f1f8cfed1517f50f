"""Reads Nsight Compute's reports into plain launches: with its own Python module, else from its CSV pages."""

from __future__ import annotations

import csv
import importlib
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from genaccel.profile.counters import Launch, wanted
from genaccel.spec import SpecError

INSTALLED = Path("/opt/nvidia/nsight-compute")


def read_report(path: Path, ncu: str | None = None) -> tuple[list[Launch], str]:
    """The launches of a report, in the order in which they ran, and what read it.

    Args:
        path: a ``.ncu-rep``.
        ncu: Nsight Compute's command: brings a Python module of its own, and writes CSV where there is none.

    Raises:
        SpecError: nothing here can read reports, or this one is not readable.
    """
    module = _module(ncu)
    if module is not None:
        try:
            return list(_launches(module, path)), f"ncu_report ({Path(module.__file__ or '').parent})"
        except (RuntimeError, OSError, AttributeError) as error:
            if ncu is None:
                raise SpecError(f"{path}: ncu_report cannot read it ({error}); record it again") from None
    if ncu is None:
        raise SpecError(
            f"{path}: reading it takes NVIDIA's package: pip install ncu-report (or Nsight Compute itself in PATH)"
        )
    pages = [_page(ncu, path, page) for page in ("raw", "details")]
    return read_csv(*pages), f"{ncu} --import --csv"


def read_csv(raw: str, details: str = "") -> list[Launch]:
    """Launches from the pages ``raw`` and ``details`` of ``ncu --import FILE --csv --print-units base``."""
    asked = set(wanted())
    rows = list(csv.DictReader(io.StringIO(_table(raw))))
    rules: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(_table(details))):
        speedup = _number(row.get("Estimated Speedup", ""))
        if row.get("Rule Name") and speedup is not None:
            rules.setdefault(row["ID"], {})[row["Rule Name"]] = speedup / 100
    launches = []
    for row in rows:
        if not row["ID"]:  # the line of units
            continue
        counters = {name: value for name in asked & row.keys() if (value := _number(row[name])) is not None}
        launches.append(Launch(row["Kernel Name"], counters, rules.get(row["ID"], {})))
    return launches


def sibling_python(ncu: str | None = None) -> str:
    """Folder of the Python module that comes with Nsight Compute; empty where there is none."""
    if ncu is None:
        return ""
    folder = Path(ncu).resolve().parent
    # The command in the toolkit's bin may be a script that starts the one under /opt.
    homes = [folder, *folder.parents[:3], *sorted(INSTALLED.glob("*"), reverse=True)]
    places = [home / "extras" / "python" for home in homes]
    return next((str(place) for place in places if any(place.glob("ncu_report*"))), "")


def _module(ncu: str | None) -> ModuleType | None:
    with suppress(ImportError):
        return importlib.import_module("ncu_report")
    if folder := sibling_python(ncu):
        sys.path.append(folder)
        with suppress(ImportError):
            return importlib.import_module("ncu_report")
        sys.path.remove(folder)
    return None


def _launches(module: ModuleType, path: Path) -> Iterator[Launch]:
    asked = wanted()
    context = module.load_report(str(path))
    for number in range(context.num_ranges()):
        results = context.range_by_idx(number)
        for place in range(results.num_actions()):
            action = results.action_by_idx(place)
            metrics = {name: action.metric_by_name(name) for name in asked}
            counters = {name: metric.as_double() for name, metric in metrics.items() if _measured(metric)}
            yield Launch(action.name(action.NameBase_DEMANGLED), counters, dict(_rules(action)))


def _measured(metric: object) -> bool:
    return metric is not None and metric.has_value()


def _rules(action: object) -> Iterator[tuple[str, float]]:
    """Nsight Compute states speed-ups in percent of the kernel's time."""
    for rule in action.rule_results_as_dicts():
        estimate = rule.get("speedup_estimation")
        if estimate:
            yield rule["rule_identifier"], estimate["speedup"] / 100


def _page(ncu: str, path: Path, page: str) -> str:
    line = [ncu, "--import", str(path), "--page", page, "--csv", "--print-units", "base", "--print-fp"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SpecError(f"{path}: {ncu} cannot read it ({(done.stdout + done.stderr)[-300:].strip()}); record it again")
    return done.stdout


def _table(text: str) -> str:
    """From the line of column names on; Nsight Compute may print messages before it."""
    lines = text.splitlines(keepends=True)
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    return "".join(lines[start:])


def _number(text: str | None) -> float | None:
    """None where the page leaves the column out: lines of metrics end before those of rules."""
    with suppress(ValueError):
        return float((text or "").replace(",", ""))
    return None
