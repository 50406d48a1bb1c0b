"""The delay until a broker knows a commit, and the fate of commits when a topic is deleted
(rocketmq.md §5.2).

Upstream: ``RemoteBrokerOffsetStore`` of the client, ``ConsumerOffsetManager`` of the broker.
"""

from rebalance_core.model.times import FIRST_OFFSET_PERSIST_MS, OFFSET_FLUSH_MS
from rebalance_core.model.versions import Version, parse_version

# Commits are one-way requests: the client logs them when they are sent. Two real owners started at
# 0, 135 and 260 ms after the first commit of their queue had been logged.
COMMIT_TRANSIT_MS = 1_000

OWN_COMMIT_STORED_MS = FIRST_OFFSET_PERSIST_MS + COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""A member that has been the only holder of a queue for this long wrote the commit in the broker's
store."""
FINAL_COMMIT_STORED_MS = COMMIT_TRANSIT_MS + OFFSET_FLUSH_MS
"""Any client that gave a queue up this long ago has its last commit in the broker's store."""

OFFSETS_GO_WITH_THE_TOPIC = (5, 0, 0)  # AdminBrokerProcessor.deleteTopic: cleanOffset(topic)


def deletes_offsets(version: str | Version) -> bool:
    """Return True if a broker of this version forgets all commits on a topic that is deleted."""
    return parse_version(str(version)) >= OFFSETS_GO_WITH_THE_TOPIC
