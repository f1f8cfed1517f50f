"""The code behind a rule as one hash: edits to it rerun the rule, edits elsewhere do not.

The hash covers every library module that an entry module imports, directly or through others, wherever in
the file the import stands. It is found in the syntax trees, so nothing is imported (no torch while
Snakemake parses), and leaves out comments, docstrings and blank lines.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "genaccel"
ROOT = Path(__file__).parent.parent
BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Where statements hold others."""
STRING_OR_COMMENT = re.compile(
    r"""#[^\n]*|(?P<quotes>"{3}|'{3})(?:\\.|[^\\])*?(?P=quotes)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""", re.DOTALL
)
"""Python's own tokenizer, which says the same, takes twenty times as long."""


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
        total.update(f"{module}\0{_read(source, module, root).sha256}\0".encode())
    return f"{entries[0]}@{total.hexdigest()[:16]}"


def module_hashes(*entries: str, root: Path = ROOT) -> dict[str, str]:
    """Each module of the closure with the hash of its own source."""
    found = sorted(_sources(*entries, root=root).items())
    return {module: _read(source, module, root).sha256 for module, source in found}


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
        todo += [(name, source.path) for name in _read(source, module, root).imports]
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


class _Content(NamedTuple):
    """What an edit of a module can change for others: the hash of its lines, and which modules it imports."""

    sha256: str
    imports: tuple[str, ...]


@functools.cache
def _read(source: _Source, module: str, root: Path) -> _Content:
    path = Path(source.path)
    text = path.read_text()
    statements = list(_statements(ast.parse(text, source.path)))
    lines = "\n".join(_essential_lines(text, statements))
    return _Content(hashlib.sha256(lines.encode()).hexdigest(), tuple(_walk_imports(statements, path, module, root)))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    # Not ast.walk: most nodes are expressions, which hold neither imports nor docstrings, and every job that Snakemake
    # starts reads the whole library.
    yield node
    for block in BLOCKS:
        for inner in getattr(node, block, ()):
            yield from _statements(inner)


def _walk_imports(statements: Iterable[ast.AST], path: Path, module: str, root: Path) -> Iterator[str]:
    for node in statements:
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


def _essential_lines(source: str, statements: Iterable[ast.AST]) -> Iterator[str]:
    """The lines of a module less comments, docstrings, blank lines and trailing blanks.

    Text is cut by position rather than printed from the syntax tree, whose printed form differs between
    versions of Python.
    """
    lines = without_comments(source).splitlines()
    for node in statements:
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            for row in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[row - 1] = ""
    yield from (line.rstrip() for line in lines if line.strip())


def without_comments(source: str) -> str:
    """Valid Python with its comments cut off; what looks like one in a string stays."""
    return STRING_OR_COMMENT.sub(lambda found: "" if found[0].startswith("#") else found[0], source)
