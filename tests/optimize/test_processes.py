"""Every cell in a process of its own, and what happens when one dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from genaccel.code import closure
from genaccel.optimize import __main__ as stage
from genaccel.optimize.processes import run_cell
from genaccel.optimize.report import Report, write_report
from genaccel.optimize.spec import Cell
from genaccel.spec import SpecError

CELL = Cell(shape=(4, 4, 4), batch=1)


@pytest.fixture
def started(monkeypatch):
    """Commands instead of processes; ``started.behave(options)`` gives the exit status."""
    seen = SimpleNamespace(commands=[], behave=lambda options: 0, unsupported=None)

    def run(command, check):
        options = dict(zip(command[3::2], command[4::2], strict=False))
        seen.commands.append(command)
        status = seen.behave(options)
        if not status:
            write_report(options["--report"], Report(device="cpu", unsupported=seen.unsupported, results=()))
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(subprocess, "run", run)
    return seen


def test_each_size_and_batch_has_a_fresh_process(started, job):
    settings = job(shapes=((4, 4, 4), (8, 4, 4)), batches=(1, 2))
    assert len(list(stage.measure(settings, "x@1", threads=1))) == 4
    cells = [json.loads(command[command.index("--cell") + 1]) for command in started.commands]
    assert cells == [{"shape": s, "batch": b} for s in ([4, 4, 4], [8, 4, 4]) for b in (1, 2)]
    assert all("genaccel.optimize.cell" in command for command in started.commands)


def test_predictions_are_compared_in_a_process_after_it(started, job):
    def behave(options):
        with open(options["--predictions"], "w"):
            return 0

    started.behave = behave
    run_cell(job("bf16"), CELL, "x@1", None)
    assert ["--compare" in command for command in started.commands] == [False, True]


def test_what_a_device_cannot_run_is_asked_once(started, job):
    started.unsupported = "no TF32"
    settings = job("tf32", shapes=((4, 4, 4), (8, 8, 8)))
    first, second = stage.measure(settings, "x@1", None)
    assert len(started.commands) == 1
    assert {r.reason for r in second.results} == {"no TF32"}
    assert {r.case["size"] for r in second.results} == {8}
    assert stage.run_of(settings, [first, second]).device == "cpu"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (-9, r"tiny fp32_strict at size 4, batch 1: its process was killed by SIGKILL: the host's memory may have run"),
        (-11, r"tiny fp32_strict at size 4, batch 1: its process was killed by SIGSEGV$"),
        (1, r"tiny fp32_strict at size 4, batch 1: its process failed with exit status 1; the lines above say why"),
    ],
)
def test_a_dead_process_is_an_error_that_names_the_cell(started, job, status, message):
    started.behave = lambda options: status
    with pytest.raises(SpecError, match=message):
        run_cell(job(), CELL, "x@1", None)


def test_the_process_that_waits_imports_no_torch(root):
    test = "import sys, genaccel.optimize.__main__; sys.exit('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(root / "workflow/src")}
    assert subprocess.run([sys.executable, "-c", test], env=environment, check=False).returncode == 0


def test_nothing_that_often_changes_is_behind_a_measurement():
    modules = closure("genaccel.optimize", "genaccel.optimize.cell", "genaccel.med_ddpm.unet")
    unstable = ("genaccel.variants", "genaccel.config", "genaccel.figures", "genaccel.plan", "genaccel.metrics")
    assert not [m for m in modules if m.startswith((*unstable, "genaccel.med_ddpm.fast", "genaccel.sample.samplers."))]
