"""Reading Nsight Compute's reports, and what happens where it cannot measure."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from genaccel.profile import ncu
from genaccel.profile.counters import Launch
from genaccel.profile.ncu import Refused, available, command, find_ncu, measure
from genaccel.profile.report import read_csv, read_report, sibling_python
from genaccel.profile.spec import NcuSpec
from genaccel.spec import SpecError

RAW = """==PROF== Connected to process 1
"ID","Process ID","Kernel Name","Context","sm__cycles_elapsed.max","smsp__inst_executed.sum","launch__grid_size"
"","","","","cycle","inst",""
"0","1","void f<(int)4>(T1)","1","1,234","5,000,000","7"
"1","1","g","1","10","n/a","7"
"""
DETAILS = """"ID","Kernel Name","Section Name","Metric Name","Metric Value","Rule Name","Estimated Speedup"
"0","f","GPU Speed Of Light Throughput","Duration","5","",""
"0","f","Warp State Statistics","","","CPIStall","35.6"
"0","f","Occupancy","","","Occupancy",""
"""


def test_csv_pages_give_launches_with_counters_and_rules():
    first, second = read_csv(RAW, DETAILS)
    assert first == Launch(
        "void f<(int)4>(T1)",
        {"sm__cycles_elapsed.max": 1234, "smsp__inst_executed.sum": 5e6},
        {"CPIStall": pytest.approx(0.356)},
    )
    assert second == Launch("g", {"sm__cycles_elapsed.max": 10}, {})


def test_csv_without_kernels_gives_none():
    assert read_csv("==WARNING== nothing\n") == []


class Metric(SimpleNamespace):
    def has_value(self):
        return self.value is not None

    def as_double(self):
        return self.value


class Action:
    NameBase_DEMANGLED = 2

    def __init__(self, name, metrics, rules):
        self._name, self.metrics, self.rules = name, metrics, rules

    def name(self, base):
        assert base == self.NameBase_DEMANGLED
        return self._name

    def metric_by_name(self, name):
        return self.metrics.get(name)

    def rule_results_as_dicts(self):
        return self.rules


@pytest.fixture
def module(monkeypatch):
    """NVIDIA's module, with one report of one launch."""
    metrics = {"sm__cycles_elapsed.max": Metric(value=12.0), "smsp__inst_executed.sum": Metric(value=None)}
    rules = [
        {"rule_identifier": "CPIStall", "speedup_estimation": {"type": 1, "speedup": 20.0}},
        {"rule_identifier": "X"},
    ]
    action = Action("void f<(int)4>(T1)", metrics, rules)
    results = SimpleNamespace(num_actions=lambda: 1, action_by_idx=lambda place: action)
    context = SimpleNamespace(num_ranges=lambda: 1, range_by_idx=lambda number: results)
    fake = SimpleNamespace(load_report=lambda path: context, __file__="/there/ncu_report.py")
    monkeypatch.setitem(sys.modules, "ncu_report", fake)
    return fake


def test_nvidias_module_gives_the_same_launches(module):
    launches, reader = read_report(Path("x.ncu-rep"))
    assert launches == [Launch("void f<(int)4>(T1)", {"sm__cycles_elapsed.max": 12}, {"CPIStall": pytest.approx(0.2)})]
    assert reader == "ncu_report (/there)"


def test_without_anything_to_read_with_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    with pytest.raises(SpecError, match="pip install ncu-report"):
        read_report(Path("x.ncu-rep"))


@pytest.mark.parametrize("name", ["ncu_report.py", "ncu_report"])
def test_the_module_that_comes_with_nsight_compute_is_found_beside_its_command(tmp_path, name):
    (tmp_path / "target/linux").mkdir(parents=True)
    (tmp_path / "extras/python" / name).mkdir(parents=True)
    assert sibling_python(str(tmp_path / "target/linux/ncu")) == str(tmp_path / "extras/python")


@pytest.fixture
def tool(tmp_path):
    """Makes a stand-in for `ncu` that runs lines of Python; ``argv`` holds its arguments."""

    def make(*lines: str) -> str:
        path = tmp_path / "ncu"
        path.write_text("\n".join([f"#!{sys.executable}", "import sys", "argv = sys.argv[1:]", *lines]) + "\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_without_nvidias_module_the_command_itself_writes_the_pages(monkeypatch, tool):
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    path = tool(f"print({{'raw': {RAW!r}, 'details': {DETAILS!r}}}[argv[argv.index('--page') + 1]])")
    launches, reader = read_report(Path("x.ncu-rep"), path)
    assert [launch.name for launch in launches] == ["void f<(int)4>(T1)", "g"]
    assert reader.endswith("--import --csv")


@pytest.mark.parametrize("sign", list(ncu.REFUSALS))
def test_a_refusal_is_recognised_by_what_ncu_prints(tool, tmp_path, sign):
    with pytest.raises(Refused, match=r"counters|Compute|profiler"):
        measure(tool(f"sys.exit('==ERROR== {sign}')"), tmp_path / "x.ncu-rep", ["true"], ["f"], NcuSpec())


def test_ncu_that_is_nowhere_is_a_refusal(monkeypatch):
    monkeypatch.setattr("genaccel.profile.ncu.shutil.which", lambda name: None)
    monkeypatch.setattr("genaccel.profile.ncu.Path.glob", lambda self, pattern: [])
    with pytest.raises(Refused, match="was not found in PATH"):
        find_ncu()


def test_a_step_that_fails_is_no_refusal(tool, tmp_path):
    with pytest.raises(RuntimeError, match="ended with status 1:\nit broke"):
        measure(tool("sys.exit('it broke')"), tmp_path / "x.ncu-rep", ["true"], ["f"], NcuSpec())


def test_a_measurement_that_takes_too_long_ends_with_a_remedy(tool, tmp_path):
    # What it started holds its output open.
    slow = tool("import subprocess", "subprocess.run(['sleep', '0' if '--query-metrics' in argv else '60'])")
    with pytest.raises(SpecError, match=r"did not end within 0\.01 minutes; raise profile\.ncu\.minutes"):
        measure(slow, tmp_path / "x.ncu-rep", ["true"], ["f"], NcuSpec(minutes=0.01))


def test_no_measured_kernel_is_an_error_that_names_those_asked_for(tool, tmp_path):
    with pytest.raises(SpecError, match="measured no kernel of f, g"):
        measure(
            tool("print('==WARNING== No kernels were profiled.')"),
            tmp_path / "x.ncu-rep",
            ["true"],
            ["g", "f"],
            NcuSpec(),
        )


@pytest.mark.parametrize(
    ("listed", "kept"),
    [
        ('\'"Metric name","Unit"\\n"sm__cycles_elapsed","cycle"\'', ["sm__cycles_elapsed.max"]),
        ("'nothing of use'", ["sm__cycles_elapsed.max", "sm__gone.sum"]),
    ],
)
def test_metrics_that_a_device_lacks_are_not_asked_for(tool, listed, kept):
    assert available(tool(f"print({listed})"), ["sm__cycles_elapsed.max", "sm__gone.sum"]) == kept


def test_the_command_leaves_clocks_and_caches_alone_and_escapes_names(tool, tmp_path):
    line = command(tool(""), tmp_path / "x.ncu-rep", ["python", "-m", "step"], ["a.b", "c"], 9)
    text = " ".join(line)
    assert "--profile-from-start off" in text
    assert "--clock-control none --cache-control none" in text
    assert r"--kernel-name regex:^(a\.b|c)$ --launch-count 9" in text
    assert line[-3:] == ["python", "-m", "step"]
