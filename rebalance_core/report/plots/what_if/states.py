"""What a picture of changes shows of each state: a head, the load of each consumer, the figures.

The picture draws whatever has these attributes; the package of plans is no part of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class PlannedState(Protocol):
    """What the picture asks of a state: `planning.Allocation` has it."""

    @property
    def strategy(self) -> Any:
        """What all members use; ``of_rocketmq`` says whose it is."""

    @property
    def loads(self) -> Mapping[str, int]:
        """Client id -> queues that it holds."""

    @property
    def orphaned(self) -> Sequence[Any]:
        """Readable queues with no owner."""


class PlannedChange(Protocol):
    """What the picture asks of a change: `planning.WhatIf` has it."""

    @property
    def change(self) -> Any:
        """What was asked; its text is the head of a column."""

    @property
    def before(self) -> PlannedState:
        """Today."""

    @property
    def after(self) -> PlannedState:
        """Once every member has seen the change."""

    @property
    def movement(self) -> Any:
        """``moved``, ``minimum_moves``, and why that means nothing (``caveat``, or None)."""


@dataclass(frozen=True, slots=True)
class Column:
    """A state: its head, the load of each consumer, and the figures at the foot."""

    head: str
    loads: Mapping[str, int]
    orphaned: int
    moved: str = ""
    fewest: str = ""
    caveat: str | None = None
    below: bool = False  # it moves less than any balanced result


def columns_of(steps: Sequence[PlannedChange]) -> list[Column]:
    """Each change after the state that it starts from, which is there once for a run of them."""
    starts = [(strategy_text(step.before), dict(step.before.loads)) for step in steps]
    several = any(start != starts[0] for start in starts)
    columns = []
    for at, step in enumerate(steps):
        if at == 0 or starts[at] != starts[at - 1]:
            name = f"before: {starts[at][0]}" if several else "today"
            columns.append(_today(step.before, name))
        columns.append(_after(step))
    return columns


def _today(state: PlannedState, head: str) -> Column:
    return Column(head, state.loads, len(state.orphaned))


def _after(step: PlannedChange) -> Column:
    moves, caveat = step.movement, step.movement.caveat
    fewest = moves.minimum_moves
    what, _, strategy = str(step.change).partition(", strategy ")
    return Column(
        f"{strategy}: {what}" if strategy else what, step.after.loads, len(step.after.orphaned),
        f"{moves.moved:,}", "n/a" if caveat or fewest is None else f"{fewest:,}", caveat,
        not caveat and fewest is not None and moves.moved < fewest,
    )  # fmt: skip


def strategy_text(state: PlannedState) -> str:
    """The strategy, and if it is not RocketMQ's, that."""
    of_rocketmq = getattr(state.strategy, "of_rocketmq", True)
    return str(state.strategy) if of_rocketmq else f"{state.strategy} (not RocketMQ's)"


def figures_of(columns: Sequence[Column]) -> dict[str, list[str]]:
    """The lines at the foot: label -> a text for each column."""

    def of_loads(figure: Callable[[list[int]], int]) -> list[str]:
        return [f"{figure(list(column.loads.values()) or [0]):,}" for column in columns]

    lines = {
        "consumers": [f"{len(column.loads):,}" for column in columns],
        "most queues of one": of_loads(max),
        "fewest": of_loads(min),
        "idle consumers": [f"{list(c.loads.values()).count(0):,}" for c in columns],
        "queues without an owner": [f"{column.orphaned:,}" for column in columns],
        "queues moved": [column.moved for column in columns],
        "proven fewest": [column.fewest for column in columns],
    }
    if not any(column.orphaned for column in columns):
        del lines["queues without an owner"]
    return lines
