"""Panels of horizontal bars, a bar a variant: what the figures of profiles are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from genaccel.figures.profiled import PHASES, phases_of, variants_of, workloads
from genaccel.figures.spec import FigureJob
from genaccel.figures.style import MUTED, text_at

# Inches.
WIDTH, NAMES, BAR, HEAD, FOOT, BETWEEN = 9.6, 1.75, 0.27, 0.42, 0.5, 0.55
LEGEND_ROW, NOTE, LETTER = 0.18, 0.14, 0.06

Draw = Callable[[Axes, pandas.DataFrame, Sequence[str]], None]
"""Draws one panel: axes, the rows of one workload and phase, the variants in order."""


def panels(
    rows: pandas.DataFrame,
    name: str,
    job: FigureJob,
    draw: Draw,
    legend: Mapping[str, str],
    notes: Sequence[str],
    lines: Callable[[pandas.DataFrame], int] | None = None,
) -> Figure:
    """A row of panels a workload, a panel a phase.

    Args:
        rows: as ``read_profile`` gives them.
        name: of the figure.
        draw: what goes into a panel.
        legend: colour by what it stands for; those drawn.
        notes: below the panels.
        lines: bars of a workload's panels, its variants unless said otherwise.
    """
    groups, phases = workloads(rows), phases_of(rows)
    counts = [lines(group) if lines else group["variant"].nunique() for _, group in groups]
    columns = max(1, min(len(legend), 5))
    top = HEAD + 0.1 + LEGEND_ROW * -(-len(legend) // columns) + 0.2
    heights = [max(BAR * count, 0.5) for count in counts]
    height = top + sum(heights) + BETWEEN * len(heights) + NOTE * len(notes) + 0.1
    figure = Figure(figsize=(WIDTH, height))
    text_at(figure, 0.15, 0.14, f"{name}: {job.title}", fontsize=11, fontweight="bold")
    place = top
    width = (WIDTH - NAMES - 0.2 - 0.35 * (len(phases) - 1)) / len(phases)
    for (title, group), panel in zip(groups, heights, strict=True):
        variants = variants_of(group)
        for number, phase in enumerate(phases):
            left = NAMES + number * (width + 0.35)
            bottom = height - place - panel
            axes = figure.add_axes((left / WIDTH, bottom / height, width / WIDTH, panel / height))
            axes.set_title(", ".join(filter(None, (PHASES[phase], title))), fontsize=8.5, fontweight="bold", loc="left")
            draw(axes, group[group["phase"] == phase], variants)
            _bare(axes, names=number == 0)
        place += panel + BETWEEN
    handles = [Patch(color=colour, label=label) for label, colour in legend.items()]
    if handles:
        corner = (0.1 / WIDTH, 1 - HEAD / height)
        look = {"ncols": columns, "fontsize": 7.5, "borderaxespad": 0, "columnspacing": 1.2, "handlelength": 1.2}
        figure.legend(handles=handles, loc="upper left", bbox_to_anchor=corner, **look)
    for number, note in enumerate(reversed(notes)):
        text_at(figure, 0.15, height - 0.08 - NOTE * number, note, fontsize=7, color=MUTED, va="bottom")
    return figure


def stacked(axes: Axes, table: pandas.DataFrame, colours: Mapping[str, str], text: Mapping[str, str]) -> None:
    """Bars of parts laid end to end.

    Args:
        table: a row a bar, a column a part; a row of NaN has no bar.
        colours: by part.
        text: written at the end of a bar.
    """
    places = range(len(table))
    left = pandas.Series(0.0, index=table.index)
    for part in table.columns:
        values = table[part].fillna(0.0)
        axes.barh(places, values, left=left, color=colours[part], height=0.72, linewidth=0)
        left = left + values
    most = float(left.max()) if len(left) else 0.0
    longest = max((len(end) for end in text.values()), default=0)
    inches = axes.get_position().width * axes.figure.get_size_inches()[0]
    axes.set_xlim(0, (most or 1.0) / max(0.97 - LETTER * longest / inches, 0.3))
    for place, (name, end) in enumerate(left.items()):
        axes.text(end + most * 0.01, place, text.get(str(name), ""), fontsize=7.5, va="center", color=MUTED)
    _names(axes, list(table.index))


def grouped(axes: Axes, table: pandas.DataFrame, colours: Mapping[str, str], write: Callable[[float], str]) -> None:
    """Groups of bars beside each other.

    Args:
        table: a row a group, a column a bar of it; NaN has no bar.
        colours: by column.
        write: the number at the end of a bar.
    """
    thickness = 0.8 / max(len(table.columns), 1)
    most = float(table.max().max()) if table.size else 0.0
    for number, part in enumerate(table.columns):
        for place, value in enumerate(table[part]):
            if pandas.isna(value):
                continue
            middle = place + (number - (len(table.columns) - 1) / 2) * thickness
            axes.barh(middle, value, height=thickness * 0.9, color=colours[part], linewidth=0)
            axes.text(value + most * 0.01, middle, write(value), fontsize=6.5, va="center", color=MUTED)
    axes.set_xlim(0, (most or 1.0) * 1.15)
    _names(axes, list(table.index))


def empty_figure(name: str, job: FigureJob, reason: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1.0))
    text_at(figure, 0.15, 0.14, f"{name}: {job.title}", fontsize=11, fontweight="bold")
    text_at(figure, 0.15, 0.5, f"Not measured: {reason}", fontsize=8, color=MUTED)
    return figure


def _names(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _bare(axes: Axes, names: bool) -> None:
    """Grid lines across the bars, and no marks at their names, which stand at the left panel alone."""
    axes.grid(axis="x", color="#ececec", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0, labelleft=names)
    axes.spines["left"].set_visible(False)
