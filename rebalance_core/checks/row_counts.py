"""How many rows were read, how many are bad and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of one input table, and how many of them have an issue."""

    rows: int
    bad: int


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with rows of a table: how often, and the first such row."""

    table: str
    code: str
    times: int
    source: str
    message: str
