"""The pins of pip and conda users, and of `make install`, say the same."""

from __future__ import annotations

import tomllib

import pytest
import yaml
from packaging.requirements import Requirement

from genaccel.measurement import read_run

NAMES = ("cpu", "cuda", "gaudi", "cuda-reference")


@pytest.fixture(scope="module")
def pins(root):
    def read(name: str) -> list[str]:
        lines = (root / "envs" / name).read_text().splitlines()
        return [line for line in lines if line and not line.startswith("#")]

    return read


@pytest.mark.parametrize("name", NAMES)
def test_conda_pins_what_pip_pins(root, pins, name):
    environment = yaml.safe_load((root / "envs" / f"{name}.yaml").read_text())
    assert environment["dependencies"][-1] == {"pip": pins(f"{name}.txt")}


@pytest.mark.parametrize("name", NAMES)
def test_conda_installs_the_data_carriers_too(root, pins, name):
    script = (root / "envs" / f"{name}.post-deploy.sh").read_text()
    assert f"pip install --no-deps {' '.join(pins('carriers.txt'))}\n" in script


def test_the_lock_holds_every_direct_pin(pins):
    assert set(pins("cpu.txt")) <= set(pins("cpu.lock.txt"))


def test_the_lock_pins_exactly_and_once(pins):
    names = [Requirement(line).name.lower() for line in pins("cpu.lock.txt")]
    assert all(line.count("==") == 1 for line in pins("cpu.lock.txt"))
    assert len(names) == len(set(names))


def test_a_package_has_one_version_in_all_environments(pins):
    versions: dict[str, set[str]] = {}
    for name in ("cpu", "cuda", "gaudi"):
        for line in pins(f"{name}.txt"):
            requirement = Requirement(line)
            versions.setdefault(requirement.name.lower(), set()).add(str(requirement.specifier))
    assert not {name: found for name, found in versions.items() if len(found) > 1}


def test_the_package_admits_what_is_pinned(root, pins):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    pinned = {Requirement(line).name.lower(): line.split("==")[1] for line in pins("cpu.txt")}
    for line in project["dependencies"]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[requirement.name.lower()]), line


def test_no_gaudi_pin_replaces_the_containers_torch(pins):
    assert not [line for line in pins("gaudi.txt") if Requirement(line).name == "torch"]


def test_the_reference_pins_are_what_the_committed_measurements_ran_with(root, pins):
    ran = [read_run(path).provenance for path in (root / "results/reference").glob("*/runs/*.json")]
    assert ran
    everything = pins("cuda-reference.txt") + pins("carriers.txt")
    pinned = {Requirement(line).name.lower(): line.split("==")[1] for line in everything}
    for provenance in ran:
        assert provenance["packages"].items() <= pinned.items()
        assert provenance["python"].startswith("3.12.")
