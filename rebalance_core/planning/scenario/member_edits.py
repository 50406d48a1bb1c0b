"""Edits of members: consumers added or removed, other subscriptions."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalance_core.model.times import MINUTE_MS, read_duration
from rebalance_core.planning import table_keys
from rebalance_core.planning.scenario import edit
from rebalance_core.planning.scenario.edit import GroupEdit
from rebalance_core.planning.scenario.group_life import GroupLife, MemberData
from rebalance_core.planning.table_keys import MOST_CONSUMERS

CONFIG = "CONFIG"


@dataclass(frozen=True, kw_only=True)
class AddConsumers(GroupEdit):
    """Addition of ``count`` members, or of that ``share`` of the members (1.0 doubles them).

    The members take turns as models for the settings, room and form of the client id. A group
    without a member is modelled on its last one. With a ``language``, the new members are clients
    in that language, of an unspecified release, with ids of its form.
    """

    KIND = "add_consumers"

    count: int | None = table_keys.key(table_keys.whole(1, MOST_CONSUMERS))
    share: float | None = table_keys.key(table_keys.number(0, 100))
    every: int = table_keys.key(read_duration, 0)
    language: str | None = table_keys.key(table_keys.language)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake unless exactly one of count and share is present."""
        yield from edit.exactly_one(values, "count", "share")

    def on_group(self, life: GroupLife, source: str) -> None:
        """Join the new members at intervals of ``every``."""
        models = life.draws(f"{source}/models").shuffled(life.members())
        if not models and life.last is not None:
            models = [life.last]
        if not models:
            life.log.warn(f"{source}: {life.consumer_group} has no member before that time to copy")
            return
        if any((m.settings["strategy"] or life.group_strategy).startswith(CONFIG) for m in models):
            life.log.warn(
                f"{source}: members of {life.consumer_group} have the strategy CONFIG; the "
                "new members hold the same list as their models"
            )
        for i in range(life.how_many(self.count, self.share)):
            model = models[i % len(models)]
            life.after(i * self.every, life.join_newcomer, model, source, self.language)


@dataclass(frozen=True, kw_only=True)
class RemoveConsumers(GroupEdit):
    """Removal of ``count`` of the members, or of that ``share``; the seed determines which.

    Alternatively, ``client_id`` names them; with ``each``, every member is lost in a scenario of
    its own. ``how``: ``leave`` unregisters from the brokers, ``crash`` closes the connections,
    ``expired`` is detected only by the brokers' scan.
    """

    KIND = "remove_consumers"

    count: int | None = table_keys.key(table_keys.whole(1, MOST_CONSUMERS))
    share: float | None = table_keys.key(table_keys.number(0, 1))
    client_id: tuple[str, ...] = table_keys.key(table_keys.patterns, ())
    each: str | None = table_keys.key(table_keys.one_of(edit.MEMBER))
    how: str = table_keys.key(table_keys.one_of(*edit.LOSS_DETAILS), "leave")
    every: int = table_keys.key(read_duration, 0)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake unless the members to remove are determined."""
        yield from edit.exactly_one(values, "count", "share", "client_id", "each")
        yield from edit.each_at_end(values)

    def on_group(self, life: GroupLife, source: str) -> None:
        """End the members at intervals of ``every``."""
        members = life.draws(f"{source}/choice").shuffled(life.members())
        if self.client_id:
            members = [one for one in members if edit.matches(one.key[0], self.client_id)]
        wanted = len(members) if self.client_id else life.how_many(self.count, self.share)
        if wanted > len(members):
            life.log.warn(
                f"{source}: {life.consumer_group} has {len(members)} members at that time, "
                f"not {wanted}"
            )
        for i, member in enumerate(members[:wanted]):
            life.after(i * self.every, life.remove, member, source, edit.LOSS_DETAILS[self.how])


DOWN_MS = 10_000
"""The default time from the end of a process to the join of its successor."""
EVERY_MS = MINUTE_MS


@dataclass(frozen=True, kw_only=True)
class MixedSubscriptions(GroupEdit):
    """Restart of ``percent`` of the members at intervals of ``every``, with other subscriptions.

    They subscribe to the additional topic ``extra``, or lack ``lacking``. Membership is per group,
    so for a topic to which some members do not subscribe, their shares have no owner.
    """

    KIND = "mixed_subscriptions"

    percent: float = table_keys.needed(table_keys.number(0, 100))
    extra: str | None = table_keys.key(table_keys.words)
    lacking: str | None = table_keys.key(table_keys.words)
    every: int = table_keys.key(read_duration, EVERY_MS)
    down: int = table_keys.key(read_duration, DOWN_MS)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield a mistake unless exactly one of extra and lacking is present."""
        yield from edit.exactly_one(values, "extra", "lacking")

    def subscribed(self) -> Sequence[str]:
        """Return the extra topic."""
        return () if self.extra is None else (self.extra,)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Restart the chosen members."""
        members = life.draws(f"{source}/choice").shuffled(life.members())
        chosen = members[: math.ceil(round(len(members) * self.percent / 100, 6))]
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member at that time")
        elif self.lacking and not any(
            self.lacking in (life.topics_of(member.settings) or ()) for member in chosen
        ):
            life.log.warn(
                f"{source}: no chosen member of {life.consumer_group} subscribes to {self.lacking}"
            )

        def changed(settings: MemberData) -> MemberData:
            more, fewer = ([topic] if topic else [] for topic in (self.extra, self.lacking))
            return life.resubscribed(settings, more=more, fewer=fewer)

        for i, member in enumerate(chosen):
            life.after(i * self.every, life.replace, member, source, self.down, None, None, changed)
