"""Topics whose queues members share instead of owning them (rocketmq.md §2.8, §14)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalance_core.model.group_settings import (
    PROXY_REBALANCE,
    GroupSettings,
)
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.replay.member import Member


@dataclass(frozen=True, slots=True)
class SharedTopic:
    """A topic that at least one member pops.

    Attributes:
        queues: mqAll.
        share_queue_num: the share queue number of its request mode POP; None if only members behind
            proxies pop it.
    """

    queues: tuple[MessageQueue, ...]
    share_queue_num: int | None


def shared_topics(
    members: Iterable[Member], pop_shares: Mapping[str, int], settings: GroupSettings
) -> dict[str, int | None]:
    """Return the topics that at least one member pops, in Java's order, with
    `SharedTopic.share_queue_num`.

    Args:
        members: the live members.
        pop_shares: the share number of each topic whose request mode is POP.
        settings: the group's settings.
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
