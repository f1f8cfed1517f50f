"""A termination signal ends training after the current step, with a checkpoint."""

from __future__ import annotations

import signal
from types import FrameType


class Stop:
    """Notes SIGTERM, SIGINT and SIGHUP instead of dying of them; a second SIGINT dies at once.

    Under DDP only rank 0 writes, so the others ignore SIGTERM and end when rank 0 leaves the group.
    """

    def __init__(self, rank: int) -> None:
        self.signal: int | None = None
        if rank == 0:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._note)
        else:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(signal.SIGINT, signal.SIG_DFL)
