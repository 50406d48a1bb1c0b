"""rolling_restart: all members restart, some percent at a time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.model.time_units import MINUTE_MS
from rebalance_core.planning.scenario.edits.edit import LOSS_DETAILS, GroupEdit
from rebalance_core.planning.scenario.group_life import GroupLife, Member
from rebalance_core.planning.scenario.keys import Key, number, one_of, patterns, required
from rebalance_core.planning.scenario.time import read_duration

DOWN_MS = 10_000
"""From the end of a process to the join of its successor, unless said otherwise."""
EVERY_MS = MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class RollingRestart(GroupEdit):
    """``percent`` of the members restart every ``every``, until each has restarted once.

    Client ids change as the clients make them: same address, new pid and nanotime; those with an
    instance name come back under the same id on another channel.
    """

    KIND = "rolling_restart"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "percent": Key(number(0, 100), 10.0),
        "every": Key(read_duration, EVERY_MS),
        "down": Key(read_duration, DOWN_MS),
        "how": Key(one_of(*LOSS_DETAILS), "leave"),
    }

    percent: float
    every: int
    down: int
    how: str

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart them in the order the seed gives."""
        members = life.draws(f"{source}/order").shuffled(life.members())
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member then")
        at_once = math.ceil(len(members) * self.percent / 100)

        def restart(member: Member) -> None:
            life.restart(member, source, down_ms=self.down, detail=LOSS_DETAILS[self.how])

        in_steps(life, members, at_once, self.every, restart)


def in_steps(
    life: GroupLife,
    members: Sequence[Member],
    at_once: int,
    every_ms: int,
    act: Callable[[Member], None],
) -> None:
    """Plan an act for each member, ``at_once`` members ``every_ms``, the first ones now."""
    for i, member in enumerate(members):
        life.after(i // at_once * every_ms, act, member)
