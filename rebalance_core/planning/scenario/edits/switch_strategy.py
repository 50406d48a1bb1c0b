"""switch_strategy: a group allocates by another strategy."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.edits.edit import GroupEdit
from rebalance_core.planning.scenario.edits.rolling_restart import DOWN_MS, EVERY_MS, in_steps
from rebalance_core.planning.scenario.group_life import GroupLife, Member, Settings
from rebalance_core.planning.scenario.keys import (
    Key,
    number,
    one_of,
    patterns,
    required,
    strategy,
)
from rebalance_core.planning.scenario.time import read_duration

AT_ONCE, ROLLING = "at_once", "rolling"


@dataclass(frozen=True, kw_only=True)
class SwitchStrategy(GroupEdit):
    """``at_once``: the same members under the other strategy. ``rolling``: a deploy.

    In a deploy ``percent`` of the members restart ``every`` so often under new ids, and until the
    last one has, members allocate by different strategies. Who joins later has the new one.
    """

    KIND = "switch_strategy"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "strategy": required(strategy),
        "how": Key(one_of(AT_ONCE, ROLLING), AT_ONCE),
        "percent": Key(number(0, 100), 10.0),
        "every": Key(read_duration, EVERY_MS),
        "down": Key(read_duration, DOWN_MS),
    }

    strategy: str
    how: str
    percent: float
    every: int
    down: int

    def on_group(self, life: GroupLife, source: str) -> None:
        """Switch who is there, and whoever joins later."""
        members = life.draws(f"{source}/order").shuffled(life.members())
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member then")
        life.join_rules.append(self._switched)
        if self.how == AT_ONCE:
            for member in members:
                life.rejoin(member, self._switched, source)
            return

        def restart(member: Member) -> None:
            life.restart(member, source, down_ms=self.down, change=self._switched)

        at_once = math.ceil(len(members) * self.percent / 100)
        in_steps(life, members, at_once, self.every, restart)

    def _switched(self, settings: Settings) -> Settings:
        return settings | {"strategy": self.strategy}
