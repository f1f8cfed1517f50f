"""How all figures look, and how they are saved: the same data give the same bytes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from genaccel.atomic import atomic_file
from genaccel.command import stage_parser
from genaccel.figures.spec import FiguresSpec
from genaccel.spec import SpecError

# Okabe and Ito's colours, which people with any colour vision tell apart; those that show on grey images first.
COLOURS = ("#56B4E9", "#E69F00", "#CC79A7", "#009E73", "#F0E442", "#D55E00", "#0072B2")
INK, MUTED, ACCENT, WARNING = "#222222", "#6b6b6b", "#0072B2", "#B3261E"
MINUS, TIMES = "\N{MINUS SIGN}", "\N{MULTIPLICATION SIGN}"

RC = {
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same letters on every machine
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "genaccel",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}

# What each format would otherwise stamp with the time or matplotlib's version.
NO_STAMP = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@contextmanager
def theme() -> Iterator[None]:
    """Figures made within look alike; nothing outside changes."""
    with mpl.rc_context(RC):
        yield


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def figure_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Parser with what every figure's rule passes."""
    parser = stage_parser(f"figures.{name}", description)
    parser.add_argument("--out", type=Path, required=True, help="figure to write")
    return parser


def save(figure: Figure, path: Path, settings: FiguresSpec) -> None:
    """Writes a figure in the format of the settings; whole or not at all.

    Raises:
        SpecError: the file's name says another format.
    """
    if path.suffix != f".{settings.format}":
        raise SpecError(
            f"{path} does not end in .{settings.format}, which figures.format asks for; change one of the two"
        )
    with atomic_file(path) as partial:
        figure.savefig(partial, format=settings.format, dpi=settings.dpi, metadata=NO_STAMP[settings.format])


def axes_at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches from the figure's upper left corner."""
    full_width, full_height = figure.get_size_inches()
    bottom = full_height - top - height
    return figure.add_axes((left / full_width, bottom / full_height, width / full_width, height / full_height))


def text_at(figure: Figure, left: float, top: float, text: str, **style: object) -> None:
    """Text whose upper left corner (or as ``style`` says) is at a place in inches from the upper left corner."""
    full_width, full_height = figure.get_size_inches()
    style = {"ha": "left", "va": "top"} | style
    figure.text(left / full_width, 1 - top / full_height, text, **style)
