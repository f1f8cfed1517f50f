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
import tokenize
from collections.abc import Iterator
from pathlib import Path

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
    for module in sorted(closure(*entries, root=root)):
        total.update(f"{module}\0{_module_hash(_find(module, root), _stamp(_find(module, root)))}\0".encode())
    return f"{entries[0]}@{total.hexdigest()[:16]}"


def module_hashes(*entries: str, root: Path = ROOT) -> dict[str, str]:
    """Each module of the closure with the hash of its own source."""
    return {m: _module_hash(_find(m, root), _stamp(_find(m, root))) for m in sorted(closure(*entries, root=root))}


def closure(*entries: str, root: Path = ROOT) -> set[str]:
    """The entry modules and all library modules that they import, directly or not."""
    found: set[str] = set()
    todo: list[tuple[str, str]] = []
    for entry in entries:
        todo.append((entry, "the rule"))
        if _find(f"{entry}.__main__", root):
            todo.append((f"{entry}.__main__", "the rule"))
    while todo:
        module, importer = todo.pop()
        if module in found:
            continue
        path = _find(module, root)
        if path is None:
            raise CodeError(f"{importer} imports {module}, which is no module under {root / PACKAGE}; mend the import")
        found.add(module)
        # Importing a.b.c runs the __init__ of a and of a.b first.
        parents = module.split(".")
        todo += [(".".join(parents[:i]), importer) for i in range(1, len(parents))]
        todo += [(name, str(path)) for name in _imports(path, _stamp(path), module, root)]
    return found


def _find(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


def _stamp(path: Path) -> tuple[int, int]:
    """Keys the caches below; the process that parses may outlive an edit."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


@functools.cache
def _imports(path: Path, stamp: tuple[int, int], module: str, root: Path) -> tuple[str, ...]:
    return tuple(_walk_imports(ast.parse(path.read_text(), str(path)), path, module, root))


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
def _module_hash(path: Path, stamp: tuple[int, int]) -> str:
    return hashlib.sha256("\n".join(_essential_lines(path.read_text())).encode()).hexdigest()


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
