"""What becomes of subjects that cannot be used: the study stops, or goes on without them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Literal

from genaccel.data.faults import InputFault, lines, listing, plural
from genaccel.data.manifest import Skipped
from genaccel.data.split import SPLITS, Split

SKIP = "Or set `data.<name>.on_error: skip`, which goes on without."


def leave_out(
    faults: Mapping[str, InputFault],
    splits: Mapping[str, Split],
    on_error: Literal["stop", "skip"],
    needed: Collection[str] = (),
) -> tuple[Skipped, ...]:
    """Decides on faulty subjects and says on stderr which are left out.

    Args:
        faults: by subject.
        splits: of all subjects, faulty ones included.
        needed: splits that later stages need, which would find only hours later that nothing stands in them.

    Returns:
        Those that are left out, sorted by name.

    Raises:
        InputFault: to stop at them, naming all, since finding them one run at a time is dear; to skip them,
            where no subject is left, or none of a needed split.
    """
    if on_error == "stop":
        _stop(faults, len(splits))
    skipped = tuple(Skipped(subject=name, reason=faults[name].line) for name in sorted(faults))
    for entry in skipped:
        print(f"data: leaves out {entry.subject}: {entry.reason}", file=sys.stderr)
    if skipped:
        print(f"data: leaves out {len(skipped)} of {plural(len(splits), 'subject')}", file=sys.stderr)
    if len(faults) == len(splits):
        raise _several(faults, len(splits), "Nothing is left to go on with: mend these files.")
    _check_splits(faults, splits, needed)
    return skipped


def _stop(faults: Mapping[str, InputFault], total: int) -> None:
    # Where none would be left, skipping is no way out.
    skip = f" {SKIP}" if len(faults) < total else ""
    if len(faults) == 1:
        ((name, fault),) = faults.items()
        raise InputFault(fault.of(name).what, fault.remedy + skip)
    if faults:
        raise _several(faults, total, f"Mend these files, or take the subjects out of the sample table.{skip}")


def _several(faults: Mapping[str, InputFault], total: int, remedy: str) -> InputFault:
    shown = lines([str(faults[name].of(name)) for name in sorted(faults)])
    heading = f"{len(faults)} of {plural(total, 'subject')} cannot be used:"
    return InputFault("\n      ".join([heading, *shown]), remedy)


def _check_splits(faults: Mapping[str, InputFault], splits: Mapping[str, Split], needed: Collection[str]) -> None:
    for split in SPLITS:
        members = sorted(name for name in splits if splits[name] == split)
        if not members or not faults.keys() >= set(members):
            continue
        what = f"the split `{split}` is empty, since all its subjects are left out: {listing(members)}."
        if split in needed:
            raise InputFault(
                what, "Mend one of them, or give the split others: `data.<name>.split`, or the table's column `split`."
            )
        print(f"data: {what}", file=sys.stderr)
