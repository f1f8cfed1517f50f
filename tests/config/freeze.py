"""Writes the resolved configs anew that test_config.py compares: run it to accept a changed default."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from genaccel.config.compose import compose

HERE = Path(__file__).parent
CONFIGS = (
    "config/config",
    "config/paper",
    "config/h200",
    "config/samplers",
    "config/speed",
    "config/quality",
    "config/paired",
    "config/curves",
    "tests/config/tiny",
    "tests/config/brats",
    "tests/config/whole_head",
)

if __name__ == "__main__":
    for name in CONFIGS:
        resolved = compose(yaml.safe_load((HERE.parent.parent / f"{name}.yaml").read_text())).model_dump(mode="json")
        (HERE / "resolved" / f"{Path(name).name}.json").write_text(json.dumps(resolved, indent=1) + "\n")
