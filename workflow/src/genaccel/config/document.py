"""The config's JSON schema, its commented default file and the measurement schema, from the spec classes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import yaml

from genaccel.config.compose import Config
from genaccel.measurement import Run
from genaccel.spec import Spec

HEADER = """\
# The demo, and every setting with its default. Generated from the spec classes: `make config` writes it again.
# A config named by --configfile is complete in itself: copy this file, change what differs, delete the rest.
# config/README.md says which stages each key reruns.
"""
WIDTH = 110


def schema(spec: type[Spec]) -> str:
    """JSON schema (draft 2020-12) of a spec, for editors and for checks outside Python."""
    return json.dumps(spec.model_json_schema(), indent=1, sort_keys=True) + "\n"


def default_config() -> str:
    """``config/config.yaml``: every default under a comment that says what it sets."""
    return HEADER + "\n" + "\n".join(_block(Config(), indent=0)) + "\n"


def generated() -> dict[str, str]:
    """All generated files but the table of keys: path in the repository -> content."""
    return {
        "config/config.yaml": default_config(),
        "workflow/schemas/config.schema.json": schema(Config),
        "workflow/schemas/measurement.schema.json": schema(Run),
    }


def _block(spec: Spec, indent: int) -> Iterator[str]:
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if indent == 0 and name not in ("study", "device", "devices", "merge"):
            yield ""
        yield from _comment(field.description or "", field.annotation, indent)
        yield from _entry(name, value, indent)


def _entry(name: str, value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, Spec):
        yield f"{pad}{name}:"
        yield from _block(value, indent + 2)
    elif isinstance(value, dict) and value and all(isinstance(v, Spec) for v in value.values()):
        yield f"{pad}{name}:"
        for key, entry in value.items():
            yield from _entry(key, entry, indent + 2)
    elif isinstance(value, dict) and value:
        yield f"{pad}{name}:"
        for key, entry in value.items():
            yield f"{pad}  {key}: {_scalar(entry)}"
    else:
        yield f"{pad}{name}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    if isinstance(value, float):
        text = repr(value)
        # YAML reads 1e-05 as text.
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    if isinstance(value, Spec):
        return _scalar(value.model_dump(mode="json", exclude_none=True))
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_scalar, value)) + "]"
    return yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()


def _comment(description: str, annotation: Any, indent: int) -> Iterator[str]:
    text = description
    if choices := _choices(annotation):
        text += f" ({', '.join(choices)})"
    pad = " " * indent + "# "
    yield from textwrap.wrap(text, WIDTH, initial_indent=pad, subsequent_indent=pad)


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is not None and str(get_origin(annotation)) == "typing.Literal":
        return [str(choice) for choice in get_args(annotation)]
    return []
