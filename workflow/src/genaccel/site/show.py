"""Shows the exact ``sbatch`` line of every kind of job, and submits nothing: ``make show-jobs``."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

from genaccel.config.compose import compose
from genaccel.config.reading import read_yaml
from genaccel.dry_run import describe_needed
from genaccel.run import read_profile
from genaccel.site import stand_in
from genaccel.spec import SpecError

HASTE = (
    "--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1", "--latency-wait", "0",
    "--slurm-status-command", "squeue", "--retries", "0", "--nolock",
)  # fmt: skip
LEFT_OUT = {"results", "logs", ".snakemake"}
PATIENCE_S = 600


def print_jobs(config: str, profile: str) -> None:
    """Prints one ``sbatch`` line for every kind of job of a study, as a run from scratch would submit it.

    Args:
        config: path of the study's config.
        profile: folder of a profile with the SLURM executor.

    Raises:
        SpecError: a fault in the study, the profile or the site file, or a profile that submits nothing.
    """
    for rules, line in sbatch_lines(config, profile):
        print(f"# {rules}\n{line}")


def sbatch_lines(config: str, profile: str) -> list[tuple[str, str]]:
    """Rules and ``sbatch`` line of every kind of job; jobs that differ in names and logs alone are of one kind."""
    compose(read_yaml(config))
    if read_profile(profile).get("executor") != "slurm":
        raise SpecError(f"{profile} submits nothing: its jobs run on this machine; name one with `executor: slurm`")
    root = Path.cwd()
    # What follows is in another folder.
    config, profile = os.path.abspath(config), os.path.abspath(profile)
    with tempfile.TemporaryDirectory(prefix="genaccel-jobs-") as folder:
        work = Path(folder, "work")
        _mirror(root, work)
        with chdir(work):
            outputs = describe_needed(config, _outputs)
        commands, record = stand_in.install(Path(folder), dict(_by_rule(outputs)))
        arguments = ["--configfile", config, "--workflow-profile", profile, *HASTE]
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=work,
            env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        if done.returncode:
            raise SpecError(f"these jobs cannot be submitted:\n{_faults(done.stderr + done.stdout)}")
        return sorted(_kinds(map(json.loads, record.read_text().splitlines()), folder))


def _mirror(root: Path, work: Path) -> None:
    """The checkout as links, without what runs made: every job is there to be shown, and nothing of it is touched."""
    work.mkdir()
    for entry in root.iterdir():
        if entry.name not in LEFT_OUT:
            (work / entry.name).symlink_to(entry)
    (work / "results").mkdir()
    if (root / "results/reference").is_dir():
        (work / "results/reference").symlink_to(root / "results/reference")


def _outputs(dag: Any, job: Any) -> tuple[str, list[tuple[str, bool]]]:
    files = [(str(job.benchmark), False)] if job.benchmark else []
    return job.rule.name, [*files, *((str(path), bool(path.is_directory)) for path in job.output)]


def _by_rule(outputs: Sequence[tuple[str, list[tuple[str, bool]]]]) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    for name in {rule for rule, _ in outputs}:
        yield name, [path for rule, paths in outputs if rule == name for path in paths]


def _kinds(calls: Iterator[list[str]], folder: str) -> Iterator[tuple[str, str]]:
    seen = set()
    # By their names, not by when they were submitted: of each kind the same job is shown every time.
    for call in sorted(calls, key=lambda call: call[call.index("--output") + 1]):
        wrap = next(word for word in call if word.startswith("--wrap="))
        rules = " ".join(sorted(stand_in.rules_of(wrap)))
        words = [word.replace(f"{folder}/work", ".") for word in call if word != wrap]
        words[words.index("--job-name") + 1] = "RUN"
        names = {words.index("--output") + 1, words.index("--comment") + 1}
        kind = (rules, *(word for number, word in enumerate(words) if number not in names))
        if kind not in seen:
            seen.add(kind)
            yield rules, f"sbatch {shlex.join(words)} --wrap=..."


def _faults(said: str) -> str:
    """What Snakemake said from the first error on, without where in its own code."""
    lines = said.splitlines()
    start = next((n for n, line in enumerate(lines) if re.search(r"Error|Exception|cannot run", line)), 0)
    return "\n".join(line for line in lines[start : start + 20] if not line.startswith('  File "')).strip()
