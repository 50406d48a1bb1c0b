"""Marks that distinguish the clients of one picture: a letter or number, a tint and a hatch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

TINTS = ("#d5e3f5", "#f4f6f9", "#aebfd4")
HATCHES = ("", "////", "....", "----")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a client: labels are unique, tints and hatches repeat."""

    label: str
    tint: str
    hatch: str


def marks_of(clients: Sequence[str]) -> dict[str, Mark]:
    """A mark for each, neighbours different in tint and hatch; numbers once letters run out.

    >>> [mark.label for mark in marks_of(["x", "y"]).values()]
    ['A', 'B']
    """
    few = len(clients) <= len(ascii_uppercase)
    return {
        client: Mark(
            ascii_uppercase[at] if few else str(at + 1),
            TINTS[at % len(TINTS)],
            HATCHES[at % len(HATCHES)],
        )
        for at, client in enumerate(clients)
    }
