"""The delay until a broker knows of a commit, and the fate of commits when a topic is deleted
(rocketmq.md §5.2).

Upstream: ``RemoteBrokerOffsetStore`` in the client, ``ConsumerOffsetManager`` in the broker.
"""

from rebalance_core.model.times import FIRST_OFFSET_PERSIST_MS, OFFSET_FLUSH_MS
from rebalance_core.model.versions import Version, parse_version

# Commits are one-way requests, which the client logs when it sends them. Two real owners started at
# 0 although the first commit of their queue had been logged 135 and 260 ms earlier.
COMMIT_TRANSIT_MS = 1_000

OWN_COMMIT_STORED_MS = FIRST_OFFSET_PERSIST_MS + COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""A member that has been a queue's only holder for this long wrote the commit in the broker's
store.
"""
FINAL_COMMIT_STORED_MS = COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""The last commit of any client that gave up a queue this long ago is in the broker's store."""

OFFSETS_GO_WITH_THE_TOPIC = (5, 0, 0)  # AdminBrokerProcessor.deleteTopic: cleanOffset(topic)


def deletes_offsets(version: str | Version) -> bool:
    """Return True if a broker of this version forgets all commits for a deleted topic."""
    return parse_version(str(version)) >= OFFSETS_GO_WITH_THE_TOPIC
