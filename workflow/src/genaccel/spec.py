"""Typed, closed specs: what a stage consumes, checked while parsing and written in one canonical form."""

from __future__ import annotations

import difflib
import hashlib
import json
import types
import typing
from collections.abc import Iterator
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

T = TypeVar("T")


class SpecError(ValueError):
    """Bad configuration; one line a fault, each naming the key, what is wrong and the remedy."""


class Spec(BaseModel):
    """A closed, immutable, strictly typed block of settings.

    Strict: text is never read as a number, and a number never as a switch. A float that is a whole
    number is the integer it equals, so that ``20`` and ``20.0`` are one value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @classmethod
    def build(cls, data: Any, where: str = "") -> Self:
        """Validate plain data (dicts, lists, numbers).

        Args:
            data: what YAML or JSON gave.
            where: the key path of ``data`` in the user's config, for messages.

        Raises:
            SpecError: naming every faulty key with its remedy.
        """
        try:
            # JSON mode, since strict Python mode would refuse YAML's lists for tuples.
            text = json.dumps(_whole_numbers(data, cls), default=_not_plain)
        except (TypeError, ValueError) as error:
            raise SpecError(f"{where or 'config'}: {error}") from error
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise SpecError("\n".join(_explain(error, cls, where))) from None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a canonical JSON text, as a rule passes it on the command line."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise SpecError(f"--spec is not JSON ({error}); pass what `params.spec` holds") from None
        return cls.build(data)

    def canonical(self) -> str:
        """One JSON text for one meaning: sorted keys, defaults filled in, no spare blanks."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)

    def sha256(self) -> str:
        """SHA-256 of the canonical text, in hex."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def setting(default: Any, description: str, *, example: Any, **constraints: Any) -> Any:
    """A documented field of a spec.

    Args:
        default: the value that ``config/config.yaml`` shows.
        description: what it sets, with units; becomes the comment in ``config/config.yaml``.
        example: another valid value, from which the table of what reruns when is derived.
        constraints: pydantic's (``ge``, ``gt``, ``le``, ``min_length``, ...).
    """
    if isinstance(default, (dict, list, Spec)):
        return Field(default_factory=lambda: default, description=description, examples=[example], **constraints)
    return Field(default=default, description=description, examples=[example], **constraints)


def nearest(name: str, names: typing.Iterable[str]) -> str:
    """``; did you mean `x`?`` or, with nothing near, the list of valid names."""
    names = sorted(map(str, names))
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return "valid: " + (", ".join(f"`{n}`" for n in names) or "none, since nothing is named there yet")


def _not_plain(value: Any) -> Any:
    raise TypeError(f"{value!r} is a {type(value).__name__}; use plain YAML values (quote dates and times)")


def _whole_numbers(data: Any, annotation: Any) -> Any:
    """``20.0`` -> ``20`` wherever the spec asks for an integer."""
    if isinstance(data, float) and data.is_integer() and int in set(_leaves(annotation)):
        return int(data)
    if isinstance(data, dict):
        if spec := _spec_class(annotation):
            hints = {name: f.annotation for name, f in spec.model_fields.items()}
            return {k: _whole_numbers(v, hints.get(k)) for k, v in data.items()}
        values = typing.get_args(annotation)[-1:] or (None,)
        return {k: _whole_numbers(v, values[0]) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [_whole_numbers(v, annotation) for v in data]
    return data


def _leaves(annotation: Any) -> Iterator[Any]:
    args = typing.get_args(annotation)
    if not args:
        yield annotation
    for arg in args:
        yield from _leaves(arg)


def _spec_class(annotation: Any) -> type[Spec] | None:
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        return annotation
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return next(filter(None, map(_spec_class, typing.get_args(annotation))), None)
    return None


def _explain(error: ValidationError, cls: type[Spec], where: str) -> Iterator[str]:
    for fault in error.errors():
        path = [p for p in fault["loc"] if not (isinstance(p, str) and ("[" in p or p in _BRANCHES))]
        key = ".".join([where, *map(str, path)] if where else map(str, path))
        yield f"{key}: {_message(fault, _owner(cls, path))}" if key else _message(fault, cls)


WORD = r"^[^\s'\"]+$"
"""What a command line holds as one word."""
_PATTERNS = {
    WORD: "one word without blanks and quotes, or null where there is to be none",
    r"^[A-Za-z0-9_-]+$": "letters, digits, `_` and `-`",
    r"^[0-9a-f]{64}$": "the 64 digits that `sha256sum` prints, in lower case",
}

_BRANCHES = {"int", "float", "str", "bool", "nullable"}


def _owner(cls: type[Spec], path: list[Any]) -> type[Spec]:
    """The spec class that holds the last key of ``path``."""
    owner, annotation = cls, cls
    for part in path[:-1]:
        spec = _spec_class(annotation)
        if spec is not None:
            owner = spec
            annotation = spec.model_fields[part].annotation if part in spec.model_fields else None
        else:
            args = [arg for arg in typing.get_args(annotation) if arg is not Ellipsis]
            annotation = args[-1] if args else None
    return _spec_class(annotation) or owner


def _message(fault: Any, owner: type[Spec]) -> str:
    value, kind, context = fault.get("input"), fault["type"], fault.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(fault['loc'][-1], owner.model_fields)}"
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return f"{value!r} is text, not a number; YAML reads 1e-4 as text, so write 1.0e-4, and leave the quotes out"
    if kind == "tuple_type" and isinstance(value, (str, int, float)):
        return f"{value!r} is a single value where a list belongs; write [{value}]"
    if kind == "string_pattern_mismatch":
        return f"{value!r} is no such text; use {_PATTERNS.get(context['pattern'], context['pattern'])}"
    if kind == "too_short":
        return f"{value!r} is empty; name one at least"
    if kind == "missing":
        return "missing; give it a value"
    if kind == "literal_error":
        names = [name.strip(" '\"") for name in context["expected"].replace(" or ", ",").split(",")]
        return f"unknown value {value!r}; {nearest(value, names)}"
    if kind == "value_error":
        return str(context.get("error", fault["msg"]))
    return f"{fault['msg'].lower()}, not {value!r}"
