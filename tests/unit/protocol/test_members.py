"""Who asks a broker for its share, and thresholds per queue (rocketmq.md §2.8, §4.4)."""

import pytest

from rebalance_core.protocol.pull_threshold import pull_threshold_per_queue
from rebalance_core.protocol.query_assignment import asks_broker

# Who asks a broker for its share (rocketmq.md §2.8).


@pytest.mark.parametrize(
    ("mode", "consumer_type", "model", "ordered", "version", "asks"),
    [
        ("BROKER", "PUSH", "CLUSTERING", False, "5.0.0", True),
        ("BROKER", "PUSH", "CLUSTERING", False, "5.3", True),
        ("BROKER", "PUSH", "CLUSTERING", False, "V5_5_0", True),
        ("CLIENT", "PUSH", "CLUSTERING", False, "5.3", False),
        ("BROKER", "LITE_PULL", "CLUSTERING", False, "5.3", False),
        ("BROKER", "PULL", "CLUSTERING", False, "5.3", False),
        ("BROKER", "PUSH", "BROADCASTING", False, "5.3", False),
        ("BROKER", "PUSH", "CLUSTERING", True, "5.3", False),
        ("BROKER", "PUSH", "CLUSTERING", False, "4.9", False),
        ("BROKER", "PUSH", "CLUSTERING", False, "4.9.8", False),
    ],
)
def test_only_clustering_push_that_is_not_orderly_and_from_5_0_on(
    mode: str, consumer_type: str, model: str, ordered: bool, version: str, asks: bool
) -> None:
    assert asks_broker(mode, consumer_type, model, ordered, version) is asks


# Thresholds per queue (rocketmq.md §4.4).


@pytest.mark.parametrize(
    ("for_topic", "queues", "expected"),
    [
        (1000, 3, 333),
        (1000, 1, 1000),
        (7, 10, 1),  # never 0
        (0, 10, 1),
        (-1, 3, 500),  # off
        (1000, 0, 500),  # no process queue
    ],
)
def test_the_topics_threshold_is_shared_by_all_process_queues(
    for_topic: int, queues: int, expected: int
) -> None:
    assert (
        pull_threshold_per_queue(for_topic=for_topic, current=500, process_queues=queues)
        == expected
    )
