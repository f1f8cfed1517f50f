"""Footnotes of a figure."""

from __future__ import annotations

from collections.abc import Iterator

MARKS = "*\N{DAGGER}\N{DOUBLE DAGGER}\N{SECTION SIGN}\N{PILCROW SIGN}#"


class Notes:
    """Footnotes by the marks of their cells; equal notes share a mark."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def mark(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        number = self.texts.index(text)
        return MARKS[number % len(MARKS)] * (1 + number // len(MARKS))

    def __iter__(self) -> Iterator[str]:
        return (f"{self.mark(text)} {text}" for text in self.texts)
