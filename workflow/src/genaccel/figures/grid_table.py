"""Lays out a table as a figure: lines with stubs, columns with heads, in blocks where a page has no room."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from genaccel.figures.style import INK, MUTED, text_at

# Inches.
MARGIN, COLUMN, FIRST, NEXT, PAD, TITLE, HEAD, FOOT_LINE, BETWEEN = 0.2, 1.75, 0.16, 0.125, 0.09, 0.48, 0.74, 0.14, 0.3
HEAD_LINE = 0.145
STUB = (1.6, 1.05, 0.8)
EMPTY = "\N{EN DASH}"


class Line(NamedTuple):
    """What a line is of, from the general to the special; written where the line above differs."""

    name: str
    place: str
    modality: str


class Entry(NamedTuple):
    """A cell: its text and colour, and smaller lines below."""

    text: str
    ink: str
    below: Sequence[str]

    @property
    def height(self) -> float:
        return FIRST + NEXT * len(self.below) + PAD


class Column(NamedTuple):
    """Lines of the head, the first of them bold, and a cell a line of the table."""

    head: Sequence[str]
    entries: Sequence[Entry]


def draw_table(
    title: str, lines: Sequence[Line], columns: Sequence[Column], foot: Sequence[str], most: int = 5
) -> Figure:
    """A figure of a table; with more columns than ``most``, of blocks of nearly equal width, one below the other."""
    blocks = [_block(lines, part) for part in split(columns, most)]
    widest = max(len(part) for _, part in blocks)
    width = max(MARGIN * 2 + sum(STUB) + COLUMN * widest, 6.5)
    notes = [line for text in foot for line in textwrap.wrap(text, int(width * 18))]
    heights = [_head_height(part) + sum(_heights(part)) + BETWEEN for _, part in blocks]
    figure = Figure(figsize=(width, TITLE + sum(heights) - 0.05 + FOOT_LINE * len(notes)))
    text_at(figure, MARGIN, 0.14, title, fontsize=11, fontweight="bold")
    top = TITLE
    for (kept, part), height in zip(blocks, heights, strict=True):
        right = width - MARGIN if len(blocks) == 1 else MARGIN + sum(STUB) + COLUMN * len(part)
        _draw_block(figure, top, right, kept, part)
        top += height
    for number, text in enumerate(notes):
        text_at(figure, MARGIN, top - BETWEEN + 0.12 + FOOT_LINE * number, text, fontsize=7, color=MUTED)
    return figure


def split(columns: Sequence[Column], most: int) -> list[Sequence[Column]]:
    """The columns in as few parts as it takes, none with more than ``most``, all nearly equal."""
    parts = math.ceil(len(columns) / most)
    ends = [round(len(columns) * number / parts) for number in range(parts + 1)]
    return [columns[start:end] for start, end in itertools.pairwise(ends)]


def _block(lines: Sequence[Line], part: Sequence[Column]) -> tuple[list[Line], list[Column]]:
    """The lines of which a block has anything."""
    kept = [n for n in range(len(lines)) if any(column.entries[n].text != EMPTY for column in part)]
    return [lines[n] for n in kept], [Column(column.head, [column.entries[n] for n in kept]) for column in part]


def _heights(part: Sequence[Column]) -> list[float]:
    return [max(entry.height for entry in entries) for entries in zip(*(c.entries for c in part), strict=True)]


def _draw_block(figure: Figure, top: float, right: float, lines: Sequence[Line], part: Sequence[Column]) -> None:
    edges = [right - 0.05 - COLUMN * number for number in reversed(range(len(part)))]
    _rule(figure, top, right, 1.2)
    for edge, column in zip(edges, part, strict=True):
        _head(figure, top, edge, column.head)
    top += _head_height(part)
    _rule(figure, top, right, 0.7)
    above = Line("", "", "")
    for number, (line, height) in enumerate(zip(lines, _heights(part), strict=True)):
        if number and line.name != above.name:
            _rule(figure, top, right, 0.3)
        _stub(figure, top + 0.05, line, above)
        for edge, column in zip(edges, part, strict=True):
            entry = column.entries[number]
            text_at(figure, edge, top + 0.05, entry.text, fontsize=8.5, color=entry.ink, ha="right")
            for order, text in enumerate(entry.below):
                place = top + 0.05 + FIRST + NEXT * order
                text_at(figure, edge, place, text, fontsize=7, color=MUTED, ha="right")
        above, top = line, top + height
    _rule(figure, top, right, 1.2)


def _head_height(part: Sequence[Column]) -> float:
    """HEAD has room for four lines."""
    return HEAD + HEAD_LINE * max(max(len(column.head) for column in part) - 4, 0)


def _head(figure: Figure, top: float, right: float, texts: Sequence[str]) -> None:
    name, *rest = texts
    text_at(figure, right, top + 0.08, name, fontsize=9, fontweight="bold", ha="right")
    for number, text in enumerate(rest):
        ink = MUTED if number else INK
        text_at(figure, right, top + 0.26 + HEAD_LINE * number, text, fontsize=7.5, color=ink, ha="right")


def _stub(figure: Figure, top: float, line: Line, above: Line) -> None:
    if line.name != above.name:
        text_at(figure, MARGIN, top, line.name, fontsize=9, fontweight="bold")
    if line[:2] != above[:2]:
        text_at(figure, MARGIN + STUB[0], top, line.place, fontsize=8.5)
    text_at(figure, MARGIN + sum(STUB[:2]), top, line.modality, fontsize=8.5)


def _rule(figure: Figure, top: float, right: float, weight: float) -> None:
    width, height = figure.get_size_inches()
    figure.add_artist(Line2D((MARGIN / width, right / width), (1 - top / height,) * 2, color=INK, linewidth=weight))
