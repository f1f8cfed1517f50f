"""The scores that figures show: names, directions, what stands beside them; and how they are read."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal, NamedTuple

import pandas

from genaccel.figures.tidy import read_tidy
from genaccel.measurement import parse_case
from genaccel.spec import SpecError

ARROWS = {"higher": "\N{UPWARDS ARROW}", "lower": "\N{DOWNWARDS ARROW}", "as real": "\N{ALMOST EQUAL TO}"}


class Score(NamedTuple):
    """One score of the stage `metrics`.

    Attributes:
        name: as figures write it.
        better: the direction that is better; ``as real``: the nearer to what real volumes have.
        of: a value a volume, a value a pair of volumes, or one value of the whole set.
        least, most: what it can be; an interval of few volumes would go beyond.
    """

    name: str
    better: Literal["higher", "lower", "as real"]
    of: Literal["volume", "pair", "set"]
    least: float = -math.inf
    most: float = math.inf

    @property
    def label(self) -> str:
        return f"{self.name} {ARROWS[self.better]}"


SCORES = {
    "ssim": Score("SSIM", "higher", "volume", -1, 1),
    "ms_ssim": Score("MS-SSIM", "higher", "volume", 0, 1),
    "psnr": Score("PSNR", "higher", "volume"),
    "mse": Score("MSE", "lower", "volume", 0),
    "dice": Score("Dice", "higher", "volume", 0, 1),
    "fid": Score("FID-3D", "lower", "set"),
    "kid": Score("KID", "lower", "set"),
    "mmd": Score("MMD", "lower", "set"),
    "ms_ssim_diversity": Score("MS-SSIM of pairs", "lower", "pair", 0, 1),
    "nearest_train": Score("Nearest train", "as real", "volume", 0),
}
"""Scores by their metric, in the order of a table."""

COMPANIONS = ("low", "high", "floor", "real")
"""Endings of metrics that stand beside a score: the ends of its interval, real against real, and real volumes'."""

SAMPLING = ("sampler", "steps", "eta", "order", "split", "size", "per_mask")
"""Keys of a case that say which samples were scored; the others say how."""


def read_scores(path: Path) -> pandas.DataFrame:
    """The rows of stage `metrics` of a tidy table, ``variant`` empty where the run was older than variants.

    Raises:
        SpecError: not a tidy table, or one without such rows.
    """
    table = read_tidy(path, "metrics")
    shown = set(SCORES) | {f"{score}_{ending}" for score in SCORES for ending in COMPANIONS}
    scores = table[table["metric"].isin(shown)]
    if not scores["metric"].isin(list(SCORES)).any():
        raise SpecError(f"{path} holds no scores among its {len(table)} rows of `metrics`; run that stage first")
    # Such a run has its sampler in the column; in which arithmetic it sampled it does not say.
    sampler = scores["case"].map(lambda case: parse_case(case).get("sampler"))
    return scores.assign(variant=scores["variant"].where(scores["variant"] != sampler, ""))


def sampling_name(sampler: str, eta: str, order: str) -> str:
    """``ddim``, and what else of its settings makes other volumes."""
    noise = f", \N{GREEK SMALL LETTER ETA} {eta}" if eta else ""
    return sampler + noise + (f", order {order}" if order else "")
