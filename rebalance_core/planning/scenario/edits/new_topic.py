"""new_topic: a topic is created, and groups subscribe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife, topic_settings
from rebalance_core.planning.scenario.edits.edit import Edit, matches
from rebalance_core.planning.scenario.edits.scale_queues import MOST_QUEUES
from rebalance_core.planning.scenario.group_life import GroupLife, Settings
from rebalance_core.planning.scenario.keys import Key, patterns, required, whole, words
from rebalance_core.planning.scenario.time import read_duration


@dataclass(frozen=True, kw_only=True)
class NewTopic(Edit):
    """The topic ``name`` with ``queues`` on each of the brokers.

    The members of the groups ``subscribed_by`` subscribe it ``subscribe_after`` its creation, one
    ``every`` so often, while they run; who joins later has it from the start.
    """

    KIND = "new_topic"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "name": required(words),
        "queues": required(whole(1, MOST_QUEUES)),
        "broker": Key(patterns, ("*",)),
        "subscribed_by": Key(patterns, ()),
        "subscribe_after": Key(read_duration, 0),
        "every": Key(read_duration, 0),
    }

    name: str
    queues: int
    broker: tuple[str, ...]
    subscribed_by: tuple[str, ...]
    subscribe_after: int
    every: int

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Brokers and groups."""
        return {
            "broker": ("brokers", self.broker),
            "subscribed_by": ("groups", self.subscribed_by),
        }

    def concerns_group(self, consumer_group: str) -> bool:
        """True for the groups that subscribe it."""
        return matches(consumer_group, self.subscribed_by)

    def subscribed(self) -> Sequence[str]:
        """The new topic."""
        return (self.name,)

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Create it where it is not there yet."""
        for broker in sorted(life.brokers):
            if not matches(broker, self.broker):
                continue
            if broker in life.configs.get(self.name, {}):
                life.log.warn(f"{source}: topic {self.name} is on broker {broker} already")
            else:
                settings = topic_settings(self.queues, self.queues)
                life.configure(self.name, broker, settings, source)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Plan the subscriptions."""
        life.after(self.subscribe_after, self._subscribe, life, source)

    def _subscribe(self, life: GroupLife, source: str) -> None:
        members = life.draws(f"{source}/order").shuffled(life.members())
        if not members:
            life.log.warn(f"{source}: {life.consumer_group} has no member then to subscribe")
        for i, member in enumerate(members):
            life.after(i * self.every, life.subscribe, member, self.name, source)

        def with_topic(settings: Settings) -> Settings:
            return life.resubscribed(settings, more=[self.name])

        life.join_rules.append(with_topic)
