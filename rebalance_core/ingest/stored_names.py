"""The names of groups and topics in brokers' stores."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rebalance_core.ingest.collection import CONFIG_STORES, GROUPS, TOPICS
from rebalance_core.ingest.file_reader import COMMIT, MOST_WITNESSES, QUEUES, FileStats
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX


@dataclass(frozen=True, slots=True)
class StoredNames:
    """The groups and topics in a collection's stores.

    Attributes:
        groups: those with a commit or a retry topic, which a broker creates for each configured
            group with a member.
        topics: those of each ``topics.json``.
        files: each ``topics.json``.
    """

    groups: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)


def stored_names(stats: Iterable[FileStats]) -> StoredNames:
    """Return the names in stores; none if a store was read only in part or has too many.

    Args:
        stats: the stats of each file.
    """
    stored = StoredNames()
    for file_stats in stats:
        if file_stats.kind not in CONFIG_STORES:
            continue
        # subscriptionGroup.json has none of the names below
        full = file_stats.kind != GROUPS and len(file_stats.witnessed) >= MOST_WITNESSES
        if file_stats.rejected or full:
            return StoredNames()
        if file_stats.kind == TOPICS:
            stored.files.add(file_stats.name)
        for name in file_stats.witnessed:
            if name.startswith(COMMIT):
                stored.groups.add(name.removeprefix(COMMIT).partition(" ")[0])
            elif name.startswith(QUEUES):
                topic = name.removeprefix(QUEUES).rpartition(" ")[0]
                stored.topics.add(topic)
                if topic.startswith(RETRY_TOPIC_PREFIX):
                    stored.groups.add(topic.removeprefix(RETRY_TOPIC_PREFIX))
    return stored
