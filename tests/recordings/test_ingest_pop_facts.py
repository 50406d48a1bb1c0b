"""What a real 5.5.0 cluster states of groups that pop, beside who their members were."""

from functools import cache
from typing import Any

from tests.recordings.tables import Row, ingested_recording

INVISIBLE_MS = "20000"
"""popInvisibleTime of all clients of the recording."""
LONG_POLLING_MS = 20_000
"""A pop waits 15 s for messages; a dump's time is when its command began."""


@cache
def stated() -> Any:
    return ingested_recording("pop").tables["observed_facts"]


def facts(kind: str) -> list[Row]:
    return [row for row in stated() if row["kind"] == kind]


def test_what_a_client_pops() -> None:
    """pop-0 shares everything, and so any queue of each broker; pop-1 has queues of its own."""
    by_group: dict[str, set[int]] = {}
    for row in facts("POP_QUEUE"):
        by_group.setdefault(row["consumer_group"], set()).add(row["queue_id"])
        assert row["client_id"] is not None
        assert row["broker_name"] in ("broker-a", "broker-b")
        assert int(row["details"]["wait_ack_count"]) >= 0
        assert abs(int(row["details"]["last_pop_ms"]) - row["first_ms"]) < LONG_POLLING_MS
    assert by_group["pop-0"] == {-1}
    assert by_group["pop-1"] >= {0, 1, 2, 3}


def test_a_listener_too_slow_for_the_invisible_time() -> None:
    """pop-1's sleeps 1.5 s for each message."""
    rows = facts("POP_TIMED_OUT")
    assert {(row["consumer_group"], row["topic"]) for row in rows} == {("pop-1", "PopA")}
    assert {row["details"]["invisible_ms"] for row in rows} == {INVISIBLE_MS}
    assert {row["details"]["log"] for row in rows} == {"c3"}
    assert sum(row["times"] for row in rows) == 93
    assert all(row["client_id"] is not None for row in rows)


def test_a_retry_topic_that_is_not_there_yet() -> None:
    asked = {(row["topic"], row["details"]["log"]) for row in facts("MISSING_ROUTE")}
    topics = [f"%RETRY%{group}_PopA" for group in ("g-srvpull", "pop-switch")]
    assert asked == {(topic, log) for topic in topics for log in ("c3", "c6")}
    # an underscore is forbidden in neither name, so that the topic does not tell the group
    assert {row["consumer_group"] for row in facts("MISSING_ROUTE")} == {None}


def test_assignments_that_brokers_did_not_give() -> None:
    """Asked by the recording's prober: of a topic that is not there, by CONSISTENT_HASH."""
    refused = {(row["topic"], row["details"]["reason"]) for row in facts("NO_ASSIGNMENT")}
    assert refused == {("PopA", "NO_MEMBERS"), ("PopS", "NO_MEMBERS"), ("NoSuchTopic", "NO_TOPIC")}
    strategies = {row["details"]["strategy"] for row in facts("STRATEGY_UNSUPPORTED")}
    assert strategies == {"CONSISTENT_HASH"}
