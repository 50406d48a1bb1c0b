"""One live process of a group."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from rebalance_core.model import clients
from rebalance_core.model.client_profile import ClientProfile
from rebalance_core.model.clients import rules_version
from rebalance_core.model.group_settings import (
    BROADCASTING,
    GroupSettings,
)
from rebalance_core.protocol.query_assignment import asks_broker

ProcessKey: TypeAlias = tuple[str, str | None]
"""(client_id, channel_id): one process as the brokers see it."""

Traits: TypeAlias = frozenset[tuple[str, object]]
"""What decides which queues a member takes, its client id aside, by attribute."""

_TRAITS = (
    "subscriptions",
    "subscriptions_known",
    "strategy",
    "version",
    "message_model",
    "rebalance_mode",
    "suspended",
    "retry_topic",
    "language",
    "profile",
)


@lru_cache(maxsize=1 << 12)  # equal ones are mostly one object, which compares at once
def _kept_once(traits: Traits) -> Traits:
    return traits


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
    profile: ClientProfile = clients.JAVA_PROFILE
    """How its client behaves; of one behind a proxy, which divides for it, as Java's."""
    traits: Traits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        traits = frozenset((name, getattr(self, name)) for name in _TRAITS)
        object.__setattr__(self, "traits", _kept_once(traits))

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
        """False: the rule, or the order of the members, by which it divides is not known."""
        return self.message_model == BROADCASTING or self.profile.share_known(self.strategy)

    @property
    def share_known(self) -> bool:
        """False: it is not known which queues it takes."""
        return self.subscriptions_known and self.rule_known

    @property
    def key(self) -> ProcessKey:
        """Return the key that distinguishes this process from another with the same client id."""
        return self.client_id, self.channel_id
