"""Reads config files, refusing what YAML would pass over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from genaccel.spec import SpecError


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses two equal keys in one block; YAML's own takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise SpecError(
                    f"{node.start_mark.name}, line {key.start_mark.line + 1}: the key `{name}` stands twice in one "
                    "block; merge the two"
                )
            seen.add(name)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A config file as plain data.

    Raises:
        SpecError: it is missing, no YAML, no map of settings, or has a key twice.
    """
    if not Path(path).is_file():
        there = ", ".join(f"`{p}`" for p in sorted(Path("config").glob("*.yaml")))
        raise SpecError(f"there is no config {path}; there are {there}")
    try:
        with open(path, encoding="utf-8") as file:
            raw = yaml.load(file, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no YAML: {error}") from None
    if not isinstance(raw, dict):
        raise SpecError(f"{path} holds no settings; start from config/config.yaml")
    return raw
