"""remove_consumers: processes of a group go and do not come back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rebalance_core.planning.scenario.edits.add_consumers import MOST_CONSUMERS
from rebalance_core.planning.scenario.edits.edit import LOSS_DETAILS, GroupEdit, exactly_one
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.scenario.keys import Key, number, one_of, patterns, required, whole
from rebalance_core.planning.scenario.time import read_duration


@dataclass(frozen=True, kw_only=True)
class RemoveConsumers(GroupEdit):
    """``count`` of the members, or that ``share`` of them; the seed decides which.

    ``how``: ``leave`` says so to the brokers, ``crash`` is seen by them, ``expired`` is found by
    their scan only.
    """

    KIND = "remove_consumers"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "group": required(patterns),
        "count": Key(whole(1, MOST_CONSUMERS)),
        "share": Key(number(0, 1)),
        "how": Key(one_of(*LOSS_DETAILS), "leave"),
        "every": Key(read_duration, 0),
    }

    count: int | None
    share: float | None
    how: str
    every: int

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Count or share."""
        yield from exactly_one(values, "count", "share")

    def on_group(self, life: GroupLife, source: str) -> None:
        """End them, one ``every``."""
        members = life.draws(f"{source}/choice").shuffled(life.members())
        wanted = life.how_many(self.count, self.share)
        if wanted > len(members):
            life.log.warn(
                f"{source}: {life.consumer_group} has {len(members)} members then, not {wanted}"
            )
        for i, member in enumerate(members[:wanted]):
            life.after(i * self.every, life.remove, member, source, LOSS_DETAILS[self.how])
