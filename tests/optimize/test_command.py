"""The stage as its rule runs it."""

from __future__ import annotations

import os
import subprocess
import sys

from genaccel.measurement import case_text, read_run
from genaccel.variants import VARIANTS


def test_a_variant_is_measured_and_compared_with_strict_fp32_in_fresh_processes(job, root, tmp_path):
    switches = VARIANTS["fp32_strict"].model_copy(update={"memory_format": "channels_last"})
    settings = job("mine", switches=switches, volumes=())
    command = [sys.executable, "-m", "genaccel.optimize", "--spec", settings.canonical(), "--code", "optimize@1"]
    command += ["--threads", "1", "--run", str(tmp_path / "run.json")]
    environment = os.environ | {"PYTHONPATH": str(root / "workflow/src"), "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "run.json")
    assert (run.stage, run.model, run.variant, run.device) == ("optimize", "tiny", "mine", "cpu")
    found = {(result.metric, case_text(result.case)): result for result in run.results}
    assert found["output_rel_error", "batch=1;size=4;t=5"].values[0] < 1e-5
    assert found["train_step_time", "batch=1;size=4"].values
    assert run.provenance["precision"]["memory_format"] == "channels_last"
    assert run.provenance["cells"][0]["clock"] == "host's monotonic clock"
    assert "mine: denoise_step_time (batch=1;size=4)" in done.stdout
    assert not list(tmp_path.glob("genaccel-*"))
