"""One live process of a group, and the topics whose queues members share instead of owning them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rebalance_core.model.group_settings import BROADCASTING, PROXY_REBALANCE, GroupSettings
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.protocol.languages import JAVA_PROFILE, ClientProfile, rules_version
from rebalance_core.protocol.members import asks_broker

# One live process of a group.

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
    language: str | None = None
    profile: ClientProfile = JAVA_PROFILE
    """How its client behaves; of one behind a proxy, which divides for it, as Java's."""

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
            self.rules_version,
        )

    @property
    def rules_version(self) -> str:
        """The RocketMQ version whose rules it follows in what its profile does not say."""
        return rules_version(self.language, self.version)

    @property
    def rule_known(self) -> bool:
        """False: nobody knows by which rule, or by which order of the members, it divides."""
        return self.message_model == BROADCASTING or self.profile.share_known(self.strategy)

    @property
    def share_known(self) -> bool:
        """False: nobody can say which queues it takes."""
        return self.subscriptions_known and self.rule_known

    @property
    def key(self) -> ProcessKey:
        """Return the key that tells this process from another with the same client id."""
        return self.client_id, self.channel_id


# Topics whose queues members share instead of owning them (rocketmq.md §2.8, §14).


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic that some member pops.

    Attributes:
        queues: mqAll.
        share_queue_num: of its request mode POP; None: no member asks a broker to pop it, those
            that pop it are behind proxies.
    """

    queues: tuple[MessageQueue, ...]
    share_queue_num: int | None


def shared_topics(
    members: Iterable[Member], pop_shares: Mapping[str, int], settings: GroupSettings
) -> dict[str, int | None]:
    """The topics that some member pops, in Java order, each with its `SharedTopic.share_queue_num`.

    Args:
        members: the live ones.
        pop_shares: share number of each topic whose request mode is POP.
        settings: the group's.
    """
    popped: set[str] = set()
    behind_proxies: set[str] = set()
    for member in members:
        if member.rebalance_mode == PROXY_REBALANCE:
            behind_proxies |= member.subscriptions
        elif pop_shares and member.asks_broker(settings):
            popped |= member.subscriptions & pop_shares.keys()
    return {
        topic: pop_shares[topic] if topic in popped else None
        for topic in sorted(popped | behind_proxies, key=java_string_key)
    }
