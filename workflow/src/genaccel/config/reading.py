"""Reads config files, refusing what YAML would pass over in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from genaccel.spec import SpecError

_START = "start from config/config.yaml"


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

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        number = super().construct_yaml_int(node)
        if ":" in node.value:
            raise SpecError(
                f"{node.start_mark.name}, line {node.start_mark.line + 1}: YAML counts {node.value} in sixties, "
                f"as {number}; write the number that you mean"
            )
        return number


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A config file as plain data.

    Raises:
        SpecError: it is missing, no YAML, no map of settings, or has a key twice.
    """
    if not Path(path).is_file():
        if Path(path).parent == Path("profiles"):
            raise SpecError(f"there is no {path}; `git checkout {path}` brings the shipped one back")
        there = ", ".join(f"`{p}`" for p in sorted(Path("config").glob("*.yaml")))
        raise SpecError(f"there is no config {path}; there are {there}")
    try:
        with open(path, encoding="utf-8") as file:
            raw = yaml.load(file, _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no YAML: {error}") from None
    if not isinstance(raw, dict):
        start = "`git checkout` brings the shipped one back" if "profiles" in Path(path).parts else _START
        raise SpecError(f"{path} holds no settings; {start}")
    return raw
