"""Thresholds per queue (rocketmq.md §4.4)."""

import pytest

from rebalance_core.protocol.pull_threshold import pull_threshold_per_queue


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
