"""SLURM's commands, recording what they are asked and running nothing: jobs "end" at once, with empty outputs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

COMMANDS = ("sbatch", "squeue", "scontrol", "sinfo", "sacct", "sacctmgr", "sshare", "scancel")


def install(folder: Path, outputs: Mapping[str, Sequence[tuple[str, bool]]]) -> tuple[Path, Path]:
    """Writes the commands.

    Args:
        folder: where to.
        outputs: by rule, the paths that it makes and whether each is a folder.

    Returns:
        The folder for PATH, and the file that will hold every call of ``sbatch`` as JSON, one a line.
    """
    (folder / "outputs.json").write_text(json.dumps(outputs))
    record, commands = folder / "record.jsonl", folder / "bin"
    record.touch()
    commands.mkdir()
    for name in COMMANDS:
        path = commands / name
        path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-IS", __file__, name, str(folder)])} "$@"\n')
        path.chmod(0o755)
    return commands, record


def rules_of(wrapped: str) -> set[str]:
    """The rules that a submitted command runs."""
    allowed = re.search(r"--allowed-rules ((?:\w+ )+)", wrapped)
    return set(allowed[1].split()) if allowed else set()


def _sbatch(folder: Path, arguments: Sequence[str]) -> None:
    for rule in rules_of(next(word for word in arguments if word.startswith("--wrap="))):
        for name, is_folder in json.loads((folder / "outputs.json").read_text())[rule]:
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if is_folder:
                path.mkdir(exist_ok=True)
            else:
                path.touch()
    with open(folder / "record.jsonl", "r+") as record:
        fcntl.flock(record, fcntl.LOCK_EX)
        number = len(record.readlines()) + 1
        record.write(json.dumps(list(arguments)) + "\n")
    print(number)


def _squeue(folder: Path) -> None:
    for number, _ in enumerate((folder / "record.jsonl").read_text().splitlines(), 1):
        print(f"{number}|COMPLETED")


if __name__ == "__main__":
    command, place, *rest = sys.argv[1:]
    if command == "sbatch":
        _sbatch(Path(place), rest)
    elif command == "squeue":
        _squeue(Path(place))
    elif command == "scontrol" and os.path.basename(rest[-1]) == "config":
        # Long enough for the executor to trust squeue.
        print("MinJobAge               = 3600 sec")
