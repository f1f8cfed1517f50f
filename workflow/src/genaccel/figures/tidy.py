"""Reads a tidy table: the rows of one stage."""

from __future__ import annotations

from pathlib import Path

import pandas

from genaccel.measurement import COLUMNS
from genaccel.spec import SpecError


def read_tidy(path: Path, stage: str) -> pandas.DataFrame:
    """The rows of one stage, its texts as texts; none is no fault.

    Raises:
        SpecError: not a tidy table.
    """
    text = dict.fromkeys(("model", "variant", "device", "case", "unit", "reason"), str)
    try:
        table = pandas.read_csv(path, dtype=text, keep_default_na=False, na_values={"value": "", "n": ""})
    except (pandas.errors.EmptyDataError, pandas.errors.ParserError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} is no tidy table ({error}); derive it with python -m genaccel.table") from None
    if missing := [column for column in COLUMNS if column not in table]:
        raise SpecError(f"{path} lacks the columns {', '.join(missing)}; derive it with python -m genaccel.table")
    return table[table["stage"] == stage]
