"""mixed_subscriptions: a deploy after which some members subscribe a topic that others do not."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.planning.scenario.edits.edit import GroupEdit, exactly_one
from rebalance_core.planning.scenario.edits.rolling_restart import DOWN_MS, EVERY_MS, in_steps
from rebalance_core.planning.scenario.group_life import GroupLife, Member, Settings
from rebalance_core.planning.scenario.keys import Key, number, patterns, required, words
from rebalance_core.planning.scenario.time import read_duration


@dataclass(frozen=True, kw_only=True)
class MixedSubscriptions(GroupEdit):
    """``percent`` of the members restart, one ``every`` so often, with another subscription.

    They subscribe the topic ``extra`` as well, or lack the topic ``lacking``. Membership is by
    group, so the shares of members that do not subscribe a topic have no owner.
    """

    KIND = "mixed_subscriptions"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "percent": required(number(0, 100)),
        "extra": Key(words),
        "lacking": Key(words),
        "every": Key(read_duration, EVERY_MS),
        "down": Key(read_duration, DOWN_MS),
    }

    percent: float
    extra: str | None
    lacking: str | None
    every: int
    down: int

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Extra or lacking."""
        yield from exactly_one(values, "extra", "lacking")

    def subscribed(self) -> Sequence[str]:
        """The extra topic."""
        return () if self.extra is None else (self.extra,)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart the chosen members."""
        members = life.draws(f"{source}/choice").shuffled(life.members())
        chosen = members[: math.ceil(round(len(members) * self.percent / 100, 6))]
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member then")
        elif self.lacking and not any(
            self.lacking in (life.topics_of(member.settings) or ()) for member in chosen
        ):
            life.log.warn(f"{source}: no chosen member of {life.consumer_group} subscribes "
                          f"{self.lacking}")  # fmt: skip

        def changed(settings: Settings) -> Settings:
            more, fewer = ([topic] if topic else [] for topic in (self.extra, self.lacking))
            return life.resubscribed(settings, more=more, fewer=fewer)

        def restart(member: Member) -> None:
            life.restart(member, source, down_ms=self.down, change=changed)

        in_steps(life, chosen, 1, self.every, restart)
