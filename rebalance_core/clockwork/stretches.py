"""What is followed without a break: changes that lie close together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_core.clockwork.script import Change, Script
from rebalance_core.clockwork.ticks import SHORTEST_SILENCE_US, SILENCE_SPREAD_US


@dataclass(frozen=True, slots=True)
class Stretch:
    """Changes whose windows touch.

    Attributes:
        begin_us: followed from here, exactly; before it clients were at rest.
        end_us: to here; a pass that begins later is not followed.
        changes: numbers of the changes in it.
    """

    begin_us: int
    end_us: int
    changes: range


def stretches_of(script: Script) -> Iterator[Stretch]:
    """The stretches of a script, in order."""
    first = 0
    for number, change in enumerate(script.changes):
        following = script.changes[number + 1 :][:1]
        if following and _begin_us(script, following[0]) <= change.end_us:
            continue
        begin_us = min(_begin_us(script, each) for each in script.changes[first : number + 1])
        yield Stretch(begin_us, change.end_us, range(first, number + 1))
        first = number + 1


def _begin_us(script: Script, change: Change) -> int:
    """Passes suffer from a lost host some time before anybody notices it."""
    lost = any(
        life.host_lost
        and life.down is not None
        and change.begin_us <= life.down.event_us <= change.change_ms * 1_000
        for life in script.broker_lives
    )
    return change.begin_us - (SHORTEST_SILENCE_US + SILENCE_SPREAD_US if lost else 0)
