"""What `make show-jobs` prints, against what was recorded; the executor itself builds the lines."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from genaccel.cli import main
from genaccel.site.show import sbatch_lines

RECORDED = Path(__file__).parent / "recorded"
# A recording is made again with: genaccel show-jobs --config ... --profile ... > tests/slurm/recorded/<profile>.txt
CONFIG = "config/h200.yaml"


PLACES = {
    "v100": ("gpu-v100", "--gpus=v100:1"),
    "a100": ("gpu-a100", "--gpus=a100:1"),
    "h100": ("gpu-h100", "--gres=gpu:h100:1"),
    **{f"gaudi{n}": (f"gaudi{n}", "--gres=hpu:1") for n in (1, 2, 3)},
}


@pytest.fixture
def project(linked_project, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(linked_project(tmp_path))
    return tmp_path


@pytest.mark.parametrize("profile", ["slurm", "slurm-gaudi"])
def test_every_kind_of_job_is_submitted_as_recorded(project, capsys, profile):
    main(["show-jobs", "--config", CONFIG, "--profile", f"profiles/{profile}"])
    assert capsys.readouterr().out == (RECORDED / f"{profile}.txt").read_text()
    assert not (project / "results").exists()
    assert not (project / ".snakemake").exists()


def test_an_account_a_constraint_further_options_and_memory_by_size_reach_sbatch(project):
    site = Path("profiles/site.yaml")
    text = site.read_text().replace("account: null", "account: me")
    site.write_text(
        text.replace(
            'a100: {partition: gpu-a100, request: "--gpus=a100:{n}",',
            'a100: {partition: gpu-a100, request: "--gres=gpu:HL-225:{n}", constraint: sxm, extra: --exclusive,',
        )
    )
    profile = Path("profiles/slurm/config.yaml")
    profile.write_text(profile.read_text() + "set-resources: {train_model: {mem_mb: 'max(input.size_mb, 7000)'}}\n")
    lines = dict(sbatch_lines(f"../{project.name}/{CONFIG}", f"../{project.name}/profiles/slurm"))
    assert " --mem 7000 " in lines["train_model"]
    assert all(" -A me " in line for line in lines.values())
    assert " -C sxm " in lines["train_model"]
    assert " --gpus-per-node=HL-225:1 --exclusive " in lines["train_model"]
    assert "--gpus-per-node" not in lines["data_prepare"]


@pytest.fixture(scope="module")
def lines(linked_project, tmp_path_factory) -> list[tuple[str, str]]:
    """Every line of a study that measures on six devices and trains on more Gaudis than a node has."""
    folder = linked_project(tmp_path_factory.mktemp("many"))
    with chdir(folder):
        site = yaml.safe_load(Path("profiles/site.yaml").read_text())
        site["profiles"]["slurm"] = "gaudi3"
        site["devices"]["gaudi3"]["limits"] |= {"devices": 16, "devices_per_node": 8}
        Path("profiles/site.yaml").write_text(yaml.safe_dump(site))
        raw = yaml.safe_load(Path("tests/config/tiny.yaml").read_text())
        raw |= {"device": "auto", "devices": list(PLACES), "optimize": {"variants": ["fp32_strict"]}}
        raw["train"]["processes"] = 16
        Path("many.yaml").write_text(yaml.safe_dump(raw))
        return sbatch_lines("many.yaml", "profiles/slurm")


@pytest.mark.parametrize("device", PLACES)
def test_each_measuring_job_of_several_devices_goes_where_its_device_is(lines, device):
    (line,) = [line for rules, line in lines if rules == "optimize_measure" and f"{device}_tiny" in line]
    partition, asked = PLACES[device]
    assert f" -p {partition} " in line
    assert line.endswith(f" {asked} --wrap=...")


def test_a_training_on_more_devices_than_a_node_has_asks_for_several_nodes(lines):
    line = dict(lines)["train_model"]
    assert " -p gaudi3 " in line
    assert line.endswith(" --nodes=2 --ntasks=2 --cpus-per-task=8 -D . --gres=hpu:8 --wrap=...")


def test_a_profile_that_submits_nothing_is_refused(project, capsys):
    with pytest.raises(SystemExit):
        main(["show-jobs", "--config", CONFIG, "--profile", "profiles/default"])
    assert "profiles/default submits nothing" in capsys.readouterr().err
