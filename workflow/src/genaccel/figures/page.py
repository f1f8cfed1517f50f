"""A static HTML page: sections of text and tables, whole in one file, without scripts, readable anywhere."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from genaccel.atomic import atomic_file

# Colours are all set, and called light: within a dark report, or a browser that prefers dark, text in the
# browser's own colour would vanish.
STYLE = """
:root { color-scheme: light; }
html, body { background: #ffffff; color: #222222; }
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; margin: 1.5em; max-width: 90em; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.6em 0 0.4em; }
p { margin: 0.3em 0; max-width: 60em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #222222; border-bottom: 2px solid #222222; }
th, td { padding: 0.25em 0.9em 0.25em 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid #222222; white-space: nowrap; }
tbody tr + tr > * { border-top: 1px solid #e3e3e3; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.code { font-family: "DejaVu Sans Mono", monospace; font-size: 0.9em; overflow-wrap: anywhere; }
thead + tbody td.code { white-space: nowrap; }
.warning { color: #b3261e; } .muted { color: #6b6b6b; }
details { margin: 0.4em 0; } summary { cursor: pointer; }
"""

Kind = Literal["text", "number", "code", "warning", "muted"]


class Cell(NamedTuple):
    """A cell's text, and how it is set."""

    text: str
    kind: Kind = "text"


def count(number: int) -> Cell:
    return Cell(f"{number:,}", "number")


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """HTML of a table; all text is escaped."""
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    return f'<div class="scroll"><table>\n<thead><tr>{names}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def facts(pairs: Mapping[str, Cell]) -> str:
    """HTML of a table of names and values."""
    body = "".join(f"<tr><th>{_text(name)}</th>{_cell(cell)}</tr>\n" for name, cell in pairs.items())
    return f'<div class="scroll"><table><tbody>\n{body}</tbody></table></div>\n'


def paragraph(text: str, kind: Kind = "text") -> str:
    return f'<p class="{kind}">{_text(text)}</p>\n'


def section(title: str, *parts: str) -> str:
    return f"<section>\n<h2>{_text(title)}</h2>\n{''.join(parts)}</section>\n"


def folded(title: str, *parts: str) -> str:
    """What is there to open, without a script."""
    return f"<details><summary>{_text(title)}</summary>\n{''.join(parts)}</details>\n"


def write_page(path: Path, title: str, *parts: str) -> None:
    """Writes a page in ASCII, since a report embeds it without its encoding; whole or not at all."""
    head = '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    head += f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n"
    page = f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<h1>{_text(title)}</h1>\n'
    page += f"{''.join(parts)}</body>\n</html>\n"
    with atomic_file(path) as partial:
        partial.write_bytes(page.encode("ascii", "xmlcharrefreplace"))


def _cell(cell: Cell) -> str:
    return f'<td class="{cell.kind}">{_text(cell.text)}</td>'


def _text(text: str) -> str:
    return html.escape(text, quote=True)
