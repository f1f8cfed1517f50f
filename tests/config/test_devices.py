"""Several devices in one study, and runs of other machines beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from genaccel.config.compose import check_files, compose, job, measured_device, measured_devices
from genaccel.dry_run import describe_needed
from genaccel.spec import SpecError

# Kind, GPUs and model of each.
ASKED = {"cpu": ("cpu", 0, ""), "h100": ("cuda", 1, "h100"), "gaudi-2": ("hpu", 1, "gaudi2")}
THREE = ["cpu", "h100", {"name": "gaudi-2", "kind": "hpu", "gpu_model": "gaudi2"}]


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "hpu"])
def test_a_study_measures_its_own_device_unless_it_names_others(device):
    (only,) = measured_devices(compose({"device": device}))
    assert (only.name, only.kind, only.gpu_model) == (device, device, None)


@pytest.mark.parametrize(
    ("given", "kind", "gpu_model"),
    [
        ("h100", "cuda", "h100"),
        ("gaudi3", "hpu", "gaudi3"),
        ("cpu", "cpu", None),
        ({"name": "a", "kind": "auto"}, "auto", None),
        ({"name": "hl", "kind": "hpu", "gpu_model": "HL_225"}, "hpu", "HL_225"),
    ],
)
def test_a_plain_name_stands_for_its_kind_and_model(given, kind, gpu_model):
    (only,) = measured_devices(compose({"devices": [given]}))
    assert (only.kind, only.gpu_model) == (kind, gpu_model)


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (["h100", "h100"], "names a device twice"),
        (["H100"], "devices.0.name: .H100. is no such text"),
        ([{"name": "a", "gpu_model": "h100:2"}], "letters, digits"),
        ([{"name": "a", "kind": "tpu"}], "kind"),
        ([{"kind": "cuda"}], "name"),
    ],
)
def test_a_wrong_device_is_an_error(devices, message):
    with pytest.raises(SpecError, match=message):
        compose({"devices": devices})


def test_a_device_that_is_not_measured_is_an_error():
    with pytest.raises(SpecError, match="this study measures no 'h10'; did you mean `h100`"):
        measured_device(compose({"devices": ["cpu", "h100"]}), "h10")


@pytest.mark.parametrize("stage", ["optimize", "profile"])
def test_a_measuring_job_is_told_its_kind_of_device_alone(stage):
    config = compose({"device": "cpu", "devices": THREE})
    jobs = {
        name: job(config, stage, device=name, model="med_ddpm", variant="fp32_strict")
        for name in ("cpu", "h100", "gaudi-2")
    }
    assert [found.device for found in jobs.values()] == ["cpu", "cuda", "hpu"]
    # Which other devices there are, or what this one's model is called, reruns nothing.
    alone = compose({"device": "cuda"})
    assert jobs["h100"] == job(alone, stage, device="cuda", model="med_ddpm", variant="fp32_strict")
    assert measured_device(config, "h100").gpu_model == "h100"


@pytest.mark.parametrize(
    ("folder", "message"), [("nowhere", "there is no folder nowhere"), ("results/mine/optimize", "own runs go")]
)
def test_a_folder_of_other_runs_must_be_there_and_elsewhere(tmp_path, monkeypatch, folder, message):
    monkeypatch.chdir(tmp_path)
    Path("results/mine/optimize").mkdir(parents=True)
    with pytest.raises(SpecError, match=f"merge: .*{message}"):
        check_files(compose({"study": "mine", "merge": [folder]}))


def test_every_measuring_rule_runs_once_a_device(root, tmp_path, monkeypatch):
    for name in ("Snakefile", "workflow", "config", "envs", "profiles", "tests/config"):
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy2
        copy(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    Path("elsewhere/a").mkdir(parents=True)
    Path("elsewhere/a/run.json").write_text("{}")
    config = yaml.safe_load(Path("tests/config/tiny.yaml").read_text())
    config |= {"devices": THREE, "merge": ["elsewhere"], "optimize": {"variants": ["bf16"]}}
    config |= {"profile": {"variants": ["bf16"]}}
    Path("many.yaml").write_text(yaml.safe_dump(config))

    def described(dag, found):
        asked = {key: found.resources.get(key) for key in ("gpu", "gpu_model")}
        return found.rule.name, found.output[0], asked, list(map(str, found.input)), found.params.get("spec", "{}")

    jobs = describe_needed("many.yaml", described)
    for rule, stage in (("optimize_measure", "optimize"), ("profile_model", "profile")):
        found = {output: (asked, spec) for name, output, asked, _, spec in jobs if name == rule}
        for device, kind, gpu, model in (
            ("cpu", "cpu", 0, ""),
            ("h100", "cuda", 1, "h100"),
            ("gaudi-2", "hpu", 1, "gaudi2"),
        ):
            asked, spec = found[f"results/tiny/{stage}/{device}/tiny/bf16.json"]
            assert (asked["gpu"], asked["gpu_model"], json.loads(spec)["device"]) == (gpu, model, kind)
        inputs = next(read for name, _, _, read, _ in jobs if name == f"{stage}_table")
        assert set(found) | {"elsewhere/a/run.json"} == set(inputs)
