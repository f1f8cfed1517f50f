"""Registries that name an implementation's module, so that adding one touches nothing else."""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from genaccel.spec import SpecError, nearest


class Registry:
    """Implementations by name, each in a module of its own.

    ``Registry("sampler", "genaccel.sample.samplers", __file__)`` finds every module beside the given
    ``__init__``; an implementation is the function of the same name as its module. Nothing is imported
    until it is asked for, so names can be checked while parsing, without torch.
    """

    def __init__(self, kind: str, package: str, init_file: str) -> None:
        self.kind, self.package = kind, package
        self._folder = Path(init_file).parent

    def names(self) -> list[str]:
        return sorted(p.stem for p in self._folder.glob("*.py") if not p.stem.startswith("_"))

    def check(self, name: str) -> str:
        if name not in self.names():
            raise SpecError(f"unknown {self.kind} {name!r}; {nearest(name, self.names())}")
        return name

    def module(self, name: str) -> str:
        """The dotted module of an implementation: what the code hash of a rule follows."""
        return f"{self.package}.{self.check(name)}"

    def options(self, name: str) -> set[str]:
        """Names of an implementation's parameters, read from its source: what of the settings it consumes."""
        path = self._folder / f"{self.check(name)}.py"
        # The process that parses the workflow asks for each job, and may outlive an edit.
        return set(_parameters(path, name, path.stat().st_mtime_ns, path.stat().st_size))

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return getattr(importlib.import_module(self.module(name)), name)


@functools.cache
def _parameters(path: Path, function: str, modified_ns: int, size: int) -> frozenset[str]:
    found = next(n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef) and n.name == function)
    return frozenset(argument.arg for argument in found.args.args + found.args.kwonlyargs)
