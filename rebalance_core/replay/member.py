"""One live process of a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.protocol.members import asks_broker

ProcessKey: TypeAlias = tuple[str, str | None]
"""(client_id, channel_id): one process as the brokers see it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One live process of the group with its own settings resolved against the group's."""

    client_id: str
    channel_id: str | None
    subscriptions: frozenset[str]
    strategy: str
    version: str
    message_model: str
    consume_from_where: str
    rebalance_mode: str
    suspended: bool = False
    retry_topic: str | None = None
    """The group's retry topic, if the member subscribes it."""
    subscriptions_known: bool = True
    """False: no row states them, and ``subscriptions`` is empty for want of anything better."""

    def subscribes(self, topic: str) -> bool:
        """True if the member is known to read the topic, or would if it had queues."""
        return topic in self.subscriptions or topic == self.retry_topic

    def asks_broker(self, settings: GroupSettings) -> bool:
        """The broker divides for this member of a group with these settings (rocketmq.md §2.8)."""
        return asks_broker(
            self.rebalance_mode,
            settings.consumer_type,
            self.message_model,
            settings.ordered,
            self.version,
        )

    @property
    def key(self) -> ProcessKey:
        """What tells this process from another with the same client id."""
        return self.client_id, self.channel_id
