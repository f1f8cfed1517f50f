"""What rules need, in the words of the site file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from genaccel.site.placement import Need, place
from genaccel.site.spec import Site, read_site
from genaccel.spec import SpecError


@pytest.fixture
def raw(root) -> dict:
    """The shipped site file as plain data."""
    return yaml.safe_load((root / "profiles/site.yaml").read_text())


def asked(site: Site, need: Need, profile: str = "slurm") -> dict:
    return {key: value for key, value in place(need, site, profile).items() if value not in (None, 0)}


@pytest.mark.parametrize(
    ("request_", "resources"),
    [
        ("--gpus={n}", {"gpu": 2}),
        ("--gpus=a100:{n}", {"gpu": 2, "gpu_model": "a100"}),
        ("--gres=gpu:h100:{n}", {"gres": "gpu:h100:2"}),
        ("--gres=gpu:{n}", {"gres": "gpu:2"}),
        ("--gres=hpu:{n}", {"gres": "hpu:2"}),
        # The executor refuses dashes in a gres and a model.
        ("--gres=gpu:HL-225:{n}", {"slurm_extra": "--gpus-per-node=HL-225:2"}),
        ("--gpus=HL-225:{n}", {"slurm_extra": "--gpus-per-node=HL-225:2"}),
    ],
)
def test_devices_are_asked_for_as_the_site_says(raw, request_, resources):
    raw["devices"]["a100"] = {"partition": "p", "request": request_}
    found = asked(Site.build(raw), Need("r", devices=2))
    assert {key: found.get(key) for key in ("gpu", "gpu_model", "gres", "slurm_extra") if key in found} == resources


@pytest.mark.parametrize(
    ("request_", "resources"),
    [
        ("--gpus={n}", {"slurm_extra": "--gpus-per-node=6 --exclusive"}),
        ("--gpus=a100:{n}", {"slurm_extra": "--gpus-per-node=a100:6 --exclusive"}),
        ("--gpus=HL-225:{n}", {"slurm_extra": "--gpus-per-node=HL-225:6 --exclusive"}),
        ("--gres=gpu:h100:{n}", {"gres": "gpu:h100:6", "slurm_extra": "--exclusive"}),
        ("--gres=hpu:{n}", {"gres": "hpu:6", "slurm_extra": "--exclusive"}),
    ],
)
def test_more_devices_than_a_node_has_come_from_as_few_nodes_as_hold_them(raw, request_, resources):
    limits = {"devices": 16, "devices_per_node": 8}
    raw["devices"]["a100"] = {"partition": "p", "request": request_, "limits": limits, "extra": "--exclusive"}
    found = asked(Site.build(raw), Need("r", devices=12))
    assert found == {"slurm_partition": "p", "_cores": 1, "nodes": 2, "tasks": 2, "mpi": "srun"} | resources


def test_devices_that_one_node_has_come_from_one(raw):
    found = asked(Site.build(raw), Need("r", devices=8, model="h100"))
    assert {key: found.get(key) for key in ("nodes", "tasks", "mpi", "gres")} == {
        "nodes": 1, "tasks": None, "mpi": None, "gres": "gpu:h100:8",
    }  # fmt: skip


def test_a_profile_may_share_devices_out_among_more_nodes_and_give_options_of_its_own(raw):
    need = Need("r", devices=4, nodes=4, model="h100", extra="--contiguous")
    found = asked(Site.build(raw), need)
    assert (found["nodes"], found["gres"], found["slurm_extra"]) == (4, "gpu:h100:1", "--contiguous")


@pytest.mark.parametrize(("devices", "nodes"), [(9, None), (15, None), (12, 1), (10, 4)])
def test_devices_that_nodes_cannot_share_out_evenly_are_refused(raw, devices, nodes):
    with pytest.raises(
        SpecError, match=rf"train_model asks for {devices} devices, which .* cannot share out evenly .*"
    ):
        place(Need("train_model", devices=devices, nodes=nodes, model="h100"), Site.build(raw), "slurm")


def test_a_job_without_devices_goes_to_the_cpu_partition_and_asks_for_none(raw):
    found = asked(Site.build(raw), Need("r", model="h100", mem_mb=10, runtime=5))
    assert found == {"slurm_partition": "cpu", "mem_mb": 10, "runtime": 5, "_cores": 1}


def test_a_job_that_names_its_device_goes_there_under_any_profile(raw):
    assert asked(Site.build(raw), Need("r", devices=1, model="v100"), "slurm-gaudi")["slurm_partition"] == "gpu-v100"


@given(attempt=st.integers(1, 50), mem=st.integers(1, 120_000), runtime=st.integers(1, 1440))
def test_attempts_grow_and_never_pass_the_limits(attempt, mem, runtime):
    site = read_site(Path(__file__).parents[2] / "profiles/site.yaml")
    first, now = (place(Need("r", mem_mb=mem, runtime=runtime, attempt=n), site, "slurm") for n in (1, attempt))
    assert (first["mem_mb"], first["runtime"]) == (mem, runtime)
    assert mem <= now["mem_mb"] == min(mem * attempt, 120_000)
    assert runtime <= now["runtime"] == min(runtime * attempt, 1440)


def test_threads_are_capped_at_what_the_partition_grants(raw):
    raw["cpu"]["limits"]["threads"] = 4
    assert place(Need("r", threads=8), Site.build(raw), "slurm")["_cores"] == 4


@pytest.mark.parametrize(
    ("need", "message"),
    [
        (Need("train_model", devices=1, model="h200"), "asks for the device 'h200', which has no partition"),
        (Need("train_model", devices=9), "asks for 9 devices, and partition gpu-a100 grants 8"),
        (Need("train_model", devices=1, mem_mb=10**7), "asks for 10000000 MB, and partition gpu-a100 grants 1000000"),
        (Need("data_prepare", runtime=9999), "asks for 9999 minutes, and partition cpu grants 1440"),
        (Need("train_model", devices="two"), "train_model has gpu 'two'; give it a whole number from 0 under set-res"),
        (Need("train_model", devices=1, nodes=0), "train_model has nodes 0; give it a whole number from 1"),
        (Need("train_model", mem_mb="lots"), "train_model has mem_mb 'lots'"),
        (Need("train_model", runtime=-1), "train_model has runtime -1"),
        (Need("train_model", threads=0), "train_model has threads 0; .* under set-threads"),
    ],
)
def test_what_no_partition_holds_is_refused(raw, need, message):
    with pytest.raises(SpecError, match=message):
        place(need, Site.build(raw), "slurm")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"profiles": {"slurm": "a10"}}, "profiles.slurm: there is no row 'a10'; did you mean `a100`?"),
        ({"partitions": {}}, "partitions: unknown key"),
        ({"cpu": {}}, "cpu.partition: missing"),
        ({"devices": {"a100": {"partition": "p", "request": "--gpus=2"}}}, "no such option; write --gpus={n}"),
        ({"devices": {"a100": {"partition": "p"}}}, "devices.a100.request: missing"),
        ({"devices": {"a100": {"partition": "p", "request": "--gres=hpu:HL-225:{n}"}}}, "takes no dash"),
        ({"devices": {"a100": {"partitoin": "p"}}}, "did you mean `partition`?"),
        ({"cpu": {"partition": "a, b"}}, "cpu.partition: 'a, b' is no such text; use one word without blanks"),
        ({"account": "my account"}, "account: 'my account' is no such text"),
        ({"account": ""}, "or null where there is to be none"),
        ({"cpu": {"partition": "p", "extra": "--comment='x"}}, "is no part of a command line (No closing quotation)"),
        ({"cpu": {"partition": "p", "extra": "exclusive"}}, "holds no options of sbatch"),
    ],
)
def test_a_fault_in_the_site_file_names_the_file_and_the_key(raw, tmp_path, change, message):
    path = tmp_path / "site.yaml"
    if "devices" in change:
        change = {"devices": raw["devices"] | change["devices"]}
    path.write_text(yaml.safe_dump(raw | change))
    with pytest.raises(SpecError) as stopped:
        read_site(path)
    assert str(stopped.value).startswith(str(path))
    assert message in str(stopped.value)


@pytest.mark.parametrize("text", ["", "# nothing", "- a"])
def test_an_empty_site_file_names_it_and_where_there_is_another(tmp_path, text):
    path = tmp_path / "profiles/site.yaml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(SpecError, match=f"^{path} holds no settings; `git checkout` brings the shipped one back$"):
        read_site(path)


def test_scratch_is_a_folder_of_the_machine_that_the_job_is_on(raw, monkeypatch):
    """A variable may be there in jobs alone, but there it must be."""
    raw["scratch"] = "/scratch/$NODE_FOLDER/"
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    place(Need("r"), Site.build(raw), "slurm")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    with pytest.raises(SpecError, match=r"scratch: /scratch/\$NODE_FOLDER/ names a variable that is not set"):
        place(Need("r"), Site.build(raw), "slurm")
    monkeypatch.setenv("NODE_FOLDER", "n")
    assert place(Need("r"), Site.build(raw), "slurm")["tmpdir"] == "/scratch/n/"
