"""How the stage words bad input: where, what, how many; on a second line, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from genaccel.spec import SpecError

SHOWN = 10


class InputFault(SpecError):
    """An input that cannot be used.

    Args:
        what: which file or subject, what is wrong with it and in how many voxels, rows or files.
        remedy: what the user can do.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.what, self.remedy = what, remedy

    def __str__(self) -> str:
        # The second line stands under the first, which the command line begins with "data: ".
        return f"{self.what}\n      {self.remedy}"

    @property
    def line(self) -> str:
        """What and remedy on one line, for the manifest and for warnings."""
        return " ".join(f"{self.what} {self.remedy}".split())

    def of(self, subject: str) -> InputFault:
        """The same fault, saying whose it is."""
        return InputFault(f"{subject} {self.what}", self.remedy)


def listing(items: Sequence[str]) -> str:
    """``a, b, c and 4 more``: enough to act on, however many there are."""
    shown = ", ".join(items[:SHOWN])
    return shown if len(items) <= SHOWN else f"{shown} and {len(items) - SHOWN} more"


def lines(items: Sequence[str]) -> list[str]:
    """The first of many findings, one a line, and how many more there are."""
    rest = [f"and {len(items) - SHOWN} more"] if len(items) > SHOWN else []
    return [*items[:SHOWN], *rest]


def plural(count: int, noun: str) -> str:
    """``1 voxel``, ``1,204 voxels``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
