"""rolling_restart: all members restart, some percent at a time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.model.ordering import java_string_key
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.planning.scenario.edits.edit import LOSS_DETAILS, GroupEdit
from rebalance_core.planning.scenario.group_life import GroupLife, Member
from rebalance_core.planning.scenario.keys import Key, number, one_of, patterns, required
from rebalance_core.planning.scenario.time import read_duration

DOWN_MS = 10_000
"""From the end of a process to the join of its successor, unless said otherwise."""
EVERY_MS = MINUTE_MS
RANDOM, FIRST_FIRST, LAST_FIRST = "random", "first_first", "last_first"


@dataclass(frozen=True, kw_only=True)
class RollingRestart(GroupEdit):
    """``percent`` of the members restart every ``every``, until each has restarted once.

    In what ``order``: as the seed has it, or by client id as RocketMQ sorts them, which is the
    order of their shares under AVG, from the first on or from the last.

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
        "order": Key(one_of(RANDOM, FIRST_FIRST, LAST_FIRST), RANDOM),
    }

    percent: float
    every: int
    down: int
    how: str
    order: str

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart them in their order."""
        members = self._ordered(life, source)
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member then")
        at_once = math.ceil(len(members) * self.percent / 100)

        def restart(member: Member) -> None:
            life.restart(member, source, down_ms=self.down, detail=LOSS_DETAILS[self.how])

        in_steps(life, members, at_once, self.every, restart)

    def _ordered(self, life: GroupLife, source: str) -> list[Member]:
        if self.order == RANDOM:
            return life.draws(f"{source}/order").shuffled(life.members())
        by_id = sorted(life.members(), key=lambda member: java_string_key(member.key[0]))
        return by_id if self.order == FIRST_FIRST else by_id[::-1]


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
