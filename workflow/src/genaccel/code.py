"""The code behind a rule as one hash: edits to it rerun the rule, edits elsewhere do not.

The hash covers every library module that an entry module imports, directly or through others, wherever in
the file the import stands. It is found in the syntax trees, so nothing is imported (no torch while
Snakemake parses), and leaves out comments, docstrings and blank lines.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import os
import stat
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "genaccel"
ROOT = Path(__file__).parent.parent


class CodeError(ImportError):
    """An import of the library that names no module."""


def code(*entries: str, root: Path = ROOT) -> str:
    """``code("genaccel.train")`` -> ``genaccel.train@2fd3...``.

    Args:
        entries: modules, or packages run with ``python -m`` (their ``__main__`` counts). The first names the hash.
        root: the folder that holds the package.

    Raises:
        CodeError: a module is missing, naming the import and the file that has it.
    """
    total = hashlib.sha256()
    for module, source in sorted(_sources(*entries, root=root).items()):
        total.update(f"{module}\0{_module_hash(source)}\0".encode())
    return f"{entries[0]}@{total.hexdigest()[:16]}"


def module_hashes(*entries: str, root: Path = ROOT) -> dict[str, str]:
    """Each module of the closure with the hash of its own source."""
    return {module: _module_hash(source) for module, source in sorted(_sources(*entries, root=root).items())}


def closure(*entries: str, root: Path = ROOT) -> set[str]:
    """The entry modules and all library modules that they import, directly or not."""
    return set(_sources(*entries, root=root))


class _Source(NamedTuple):
    """A module's file with what tells an edit of it: the process that parses may outlive one."""

    path: str
    modified_ns: int
    size: int


def _sources(*entries: str, root: Path) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    todo: list[tuple[str, str]] = []
    for entry in entries:
        todo.append((entry, "the rule"))
        if _find(f"{entry}.__main__", root):
            todo.append((f"{entry}.__main__", "the rule"))
    while todo:
        module, importer = todo.pop()
        if module in found:
            continue
        source = _find(module, root)
        if source is None:
            raise CodeError(f"{importer} imports {module}, which is no module under {root / PACKAGE}; mend the import")
        found[module] = source
        # Importing a.b.c runs the __init__ of a and of a.b first.
        parents = module.split(".")
        todo += [(".".join(parents[:i]), importer) for i in range(1, len(parents))]
        todo += [(name, source.path) for name in _imports(source, module, root)]
    return found


def _find(module: str, root: Path) -> _Source | None:
    # Strings, since a parse of the workflow asks some thousand times.
    base = os.path.join(root, *module.split("."))
    for path in (f"{base}{os.sep}__init__.py", f"{base}.py"):
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            return _Source(path, status.st_mtime_ns, status.st_size)
    return None


@functools.cache
def _imports(source: _Source, module: str, root: Path) -> tuple[str, ...]:
    path = Path(source.path)
    return tuple(_walk_imports(ast.parse(path.read_text(), source.path), path, module, root))


def _walk_imports(tree: ast.AST, path: Path, module: str, root: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
                base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            if _ours(base):
                yield base
                names = (f"{base}.{alias.name}" for alias in node.names)
                yield from (name for name in names if _find(name, root))


def _ours(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


@functools.cache
def _module_hash(source: _Source) -> str:
    return hashlib.sha256("\n".join(_essential_lines(Path(source.path).read_text())).encode()).hexdigest()


def _essential_lines(source: str) -> Iterator[str]:
    """The lines of a module less comments, docstrings, blank lines and trailing blanks.

    Text is cut by position rather than printed from the syntax tree, whose printed form differs between
    versions of Python.
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[row - 1] = ""
    yield from (line.rstrip() for line in lines if line.strip())
