"""What is known of the commits of a group."""

from dataclasses import replace

from rebalance_core.audit.offsets import Offsets
from rebalance_core.model.queue import MessageQueue
from tests.unit.audit.snapshots import commit, fact, join, snapshot_of, topic


def test_a_broker_that_found_no_commit_shows_as_much_as_its_store() -> None:
    queues = [MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)]
    shown = [
        fact("NOTHING_COMMITTED", 500, topic="T", broker_name="a", queue_id=n, log="go")
        for n in (0, 1)
    ]
    for facts, said in (([], "unknown"), (shown[:1], "unknown"), (shown, "none")):
        group = snapshot_of(topic(), join("x"), facts=facts)
        group = replace(group, run=replace(group.run, offsets_ms={}))  # no store was copied
        assert Offsets(group).committed(queues) == said
    group = snapshot_of(topic(), join("x"), facts=shown, commits=[commit(0, 5)])
    assert Offsets(group).committed(queues) == "some"  # of the other one only
