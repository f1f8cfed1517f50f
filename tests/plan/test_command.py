"""``genaccel plan`` as a user meets it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from genaccel.cli import main
from genaccel.plan.dag import needed_jobs
from genaccel.plan.rates import SCALED


@pytest.fixture(scope="module")
def jobs_of():
    """Snakemake's answer, asked once for each content of a config."""
    answers = {}

    def ask(config: str):
        content = Path(config).read_text()
        if content not in answers:
            answers[content] = needed_jobs(config)
        return answers[content]

    return ask


@pytest.fixture
def plan(project, monkeypatch, capsys, jobs_of):
    """Runs the command in the project; gives exit status, output and errors."""
    monkeypatch.chdir(project)
    monkeypatch.setattr("genaccel.plan.needed_jobs", jobs_of)

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            main(["plan", *arguments])
            status = 0
        except SystemExit as end:
            status = end.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def config(project):
    """Writes a variant of a config: ``config("paper", train={"variant": "fp32_strict"})``."""

    def write(name: str, **blocks: dict) -> str:
        raw = yaml.safe_load((project / "config" / f"{name}.yaml").read_text())
        for block, settings in blocks.items():
            raw[block] = {**raw[block], **settings} if isinstance(settings, dict) else settings
        path = project / "config/changed.yaml"
        path.write_text(yaml.safe_dump(raw))
        return "config/changed.yaml"

    return write


def cells(output: str, start: str) -> list[str]:
    """The cells of the table's line that begins so."""
    line = next(line for line in output.splitlines() if line.startswith(start))
    return re.split(r"\s{2,}", line.strip())


def test_without_a_gpu_every_device_is_shown_and_what_fits_somewhere_is_no_error(plan):
    status, output, _ = plan("--config", "config/paper.yaml")
    assert status == 0
    assert cells(output, "train_model ")[1] == "2"
    assert cells(output, "data_prepare ")[1] == "2"
    assert int(cells(output, "total ")[1]) >= 14
    assert float(cells(output, "train_model model=whole_head")[4].split()[0]) == pytest.approx(19.1, rel=0.15)
    assert cells(output, "V100-16")[3] == "unsupported: tf32"
    assert cells(output, "A100-40")[2:4] == ["no", "out of memory: brats"]
    assert cells(output, "A100-80")[2] == "yes"
    assert cells(output, "A100-80")[-1] == SCALED
    assert cells(output, "H200-141")[2] == "yes"


def test_out_of_memory_on_the_device_asked_for_is_an_error_that_says_what_to_change(plan):
    status, output, error = plan("--config", "config/paper.yaml", "--device", "A100-40")
    assert status == 1
    assert "out of memory: brats" in output
    assert error.startswith("genaccel: train_model model=brats does not fit on A100-40")
    assert "models.brats.train: {gradient_checkpointing: true}" in error
    assert "whole_head" not in error
    assert "fits on A100-80, H100-80, H200-141" in error


def test_a_precision_that_the_device_asked_for_lacks_is_an_error(plan):
    status, output, error = plan("--config", "config/paper.yaml", "--device", "V100-32")
    assert status == 1
    assert "unsupported: tf32" in output
    assert "set models.whole_head.train: {variant: fp32_strict}" in error


def test_what_fits_on_the_device_asked_for_exits_zero_and_shows_that_device_alone(plan):
    status, output, error = plan("--config", "config/paper.yaml", "--device", "h200-141")
    assert (status, error) == (0, "")
    assert "A100" not in output


def test_a_job_that_takes_longer_than_its_time_limit_is_named(plan):
    _, output, _ = plan("--config", "config/paper.yaml", "--device", "h200-141")
    assert re.search(r"train_model model=brats takes \S+ h, with a time limit of 24 h: raise that", output)
    _, output, _ = plan("--config", "config/h200.yaml", "--device", "h200-141")
    assert "time limit of" not in output


def test_what_fits_nowhere_is_an_error(plan, config):
    status, _, error = plan("--config", config("h200", train={"batch": 4096}))
    assert status == 1
    assert "train_model model=med_ddpm does not fit on H200-141" in error
    assert "sample_volumes" not in error


def test_a_missing_sample_table_gives_the_error_that_a_run_gives(plan, project):
    table = project / "config/brats.tsv"
    shutil.move(table, table.with_suffix(".away"))
    try:
        status, _, error = plan("--config", "config/paper.yaml")
    finally:
        shutil.move(table.with_suffix(".away"), table)
    assert status == 1
    assert error.startswith("genaccel: data.brats.samples: there is no sample table config/brats.tsv; make one:")


def test_a_config_for_the_cpu_is_planned_for_this_machine(plan, project):
    status, output, _ = plan("--config", "tests/config/tiny.yaml")
    assert status == 0
    assert cells(output, "cpu")[2] == "yes"
    assert cells(output, "cpu")[-1] == "from one forward pass timed on this machine's CPU"
    assert "H200" not in output


def test_an_unknown_setting_is_an_error_of_one_line(plan, config):
    status, _, error = plan("--config", config("paper", train={"stepz": 1}))
    assert status == 1
    assert error == "genaccel: train.stepz: unknown key; did you mean `steps`?\n"
