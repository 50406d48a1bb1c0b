"""Who asks a broker for its share (rocketmq.md §2.8)."""

import pytest

from rebalance_core.protocol.query_assignment import asks_broker


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
