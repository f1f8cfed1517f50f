"""Jobs of every device model, sent to a real SLURM."""

from __future__ import annotations

import pytest

# The project's own rules need the device; these only say what they need and what they got.
SNAKEFILE = """
from contextlib import nullcontext as config_errors
import sys
sys.path.insert(0, "workflow/src")
LOCAL_GPU = "local-gpu"
SITE = config.pop("site")
rule all:
    input: expand("{device}.txt", device=config["devices"])
rule measure:
    output: "{device}.txt"
    threads: 2
    resources: gpu=1, gpu_model=lambda wildcards: wildcards.device, mem_mb=1000, runtime=5
    shell: "echo ${{CUDA_VISIBLE_DEVICES:-none}} > {output}"
include: "workflow/rules/site.smk"
"""
PLACES = {
    "slurm": {"v100": ("gpu-v100", "gpu:v100:1"), "h100": ("gpu-h100", "gpu:h100:1")},
    "slurm-gaudi": {"gaudi1": ("gaudi1", "hpu:1"), "gaudi2": ("gaudi2", "hpu:1"), "gaudi3": ("gaudi3", "hpu:1")},
}


@pytest.mark.parametrize("profile", PLACES)
def test_a_job_lands_where_its_device_is(cluster, site_project, submit, patience, tmp_path, profile):
    folder = site_project(tmp_path / "project", profile, **{"groups": None, "group-components": None})
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "devices.yaml").write_text(f"devices: [{', '.join(PLACES[profile])}]\n")
    run = submit(folder, "--configfile", "devices.yaml", "--workflow-profile", f"profiles/{profile}")
    assert run.wait(timeout=patience) == 0, (folder / "snakemake.log").read_text()[-6000:]
    jobs = [job for job in cluster.jobs() if job.folder == str(folder)]
    landed = {job.comment.rpartition("_")[2]: (job.partition, job.gres.replace("gres:", "")) for job in jobs}
    assert landed == PLACES[profile]
    # SLURM tells a job which NVIDIA devices are its own, and of others nothing.
    told = {(folder / f"{device}.txt").read_text() for device in PLACES[profile]}
    assert told == {"0\n" if profile == "slurm" else "none\n"}
