"""A live process in a group."""

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
"""(client_id, channel_id): a process as the brokers see it."""

Traits: TypeAlias = frozenset[tuple[str, object]]
"""The attributes, besides the client id, that determine a member's queues."""

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


@lru_cache(maxsize=1 << 12)  # equal members are mostly one object, which compares fast
def _kept_once(traits: Traits) -> Traits:
    return traits


@dataclass(frozen=True, slots=True)
class Member:
    """A live process in the group, with its own settings resolved against the group's."""

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
    """The group's retry topic, if the member subscribes to it."""
    subscriptions_known: bool = True
    """Whether a row states the subscriptions; if not, ``subscriptions`` is an empty placeholder."""
    language: str | None = None
    profile: ClientProfile = clients.JAVA_PROFILE
    """The behaviour of its client, or of Java's for a member behind a proxy, which allocates for
    it.
    """
    traits: Traits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        traits = frozenset((name, getattr(self, name)) for name in _TRAITS)
        object.__setattr__(self, "traits", _kept_once(traits))

    def subscribes(self, topic: str) -> bool:
        """Return True if the member is known to read the topic, or would if it had queues."""
        return topic in self.subscriptions or topic == self.retry_topic

    def asks_broker(self, settings: GroupSettings) -> bool:
        """Return whether the broker allocates for this member, in a group with these settings
        (rocketmq.md §2.8).
        """
        return asks_broker(
            self.rebalance_mode,
            settings.consumer_type,
            self.message_model,
            settings.ordered,
            self.rules_version,
        )

    @property
    def rules_version(self) -> str:
        """Return the RocketMQ version whose rules it follows where its profile is silent."""
        return rules_version(self.language, self.version)

    @property
    def rule_known(self) -> bool:
        """Whether the rule by which it allocates, and its order of members, are known."""
        return self.message_model == BROADCASTING or self.profile.share_known(self.strategy)

    @property
    def share_known(self) -> bool:
        """Whether its queues are known."""
        return self.subscriptions_known and self.rule_known

    @property
    def key(self) -> ProcessKey:
        """The key that distinguishes this process from another with the same client id."""
        return self.client_id, self.channel_id
