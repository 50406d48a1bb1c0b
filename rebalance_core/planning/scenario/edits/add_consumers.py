"""add_consumers: more processes of a group, like those that it has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.planning.scenario.edits.edit import GroupEdit, exactly_one
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.scenario.keys import Key, number, patterns, required, whole
from rebalance_core.planning.scenario.time import read_duration

MOST_CONSUMERS = 10_000
CONFIG = "CONFIG"


@dataclass(frozen=True, kw_only=True)
class AddConsumers(GroupEdit):
    """``count`` more, or that ``share`` of the members there are (1.0 doubles them).

    The members take turns as models of settings, room and form of the client id. A group without
    a member is modelled on its last one.
    """

    KIND = "add_consumers"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "count": Key(whole(1, MOST_CONSUMERS)),
        "share": Key(number(0, 100)),
        "every": Key(read_duration, 0),
    }

    count: int | None
    share: float | None
    every: int

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Count or share."""
        yield from exactly_one(values, "count", "share")

    def on_group(self, life: GroupLife, source: str) -> None:
        """Join them, one ``every``."""
        models = life.draws(f"{source}/models").shuffled(life.members())
        if not models and life.last is not None:
            models = [life.last]
        if not models:
            life.log.warn(f"{source}: {life.consumer_group} has had no member by then to copy")
            return
        if any((m.settings["strategy"] or life.group_strategy).startswith(CONFIG) for m in models):
            life.log.warn(
                f"{source}: members of {life.consumer_group} have the strategy CONFIG; the new "
                "ones hold the same list as their models"
            )
        for i in range(life.how_many(self.count, self.share)):
            life.after(i * self.every, life.join_newcomer, models[i % len(models)], source)
