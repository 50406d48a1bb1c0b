"""Go clients that hold queues of a broker whose address they do not have."""

from typing import Any

from rebalance_core.audit.coverage import CollectedLog, Coverage, LogSpan
from rebalance_core.audit.unknowns import client_log
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from tests.unit.audit.group_rows import fact
from tests.unit.audit.snapshots import found_in_cluster, judge_cluster

Row = Any
NO_ADDRESS = "NO_BROKER_ADDRESS"


def missing(queue_id: int, seconds: int, broker: str = "b", log: str = "go-1") -> Row:
    row = fact("NO_BROKER_ADDRESS", 0, topic="T", broker_name=broker, details={"log": log})
    return row | {"queue_id": queue_id, "last_ms": seconds * SECOND_MS}


def test_one_finding_for_the_queues_of_a_broker() -> None:
    (one,) = found_in_cluster(NO_ADDRESS, [missing(0, 60), missing(1, 45)])
    assert "clients/go-1 has no address for b and does not pull 2 queues of T there" in one.summary
    assert (one.broker_name, one.topic, one.last_ms) == ("b", "T", 60_000)
    assert one.severity is None  # the rule's own: WARNING


def test_until_the_next_poll_it_is_no_warning() -> None:
    (one,) = found_in_cluster(NO_ADDRESS, [missing(0, 20)])
    assert one.severity == "INFO"


def test_it_is_over_where_the_log_goes_on_without() -> None:
    for minutes, severity in ((9, "INFO"), (2, None)):
        log = LogSpan(0, minutes * MINUTE_MS, from_start=True)
        covered = Coverage(clients={"go-1": CollectedLog(client_log("go-1"), (log,))}, known=True)
        (one,) = found_in_cluster(NO_ADDRESS, [missing(0, 60)], covered=covered)
        assert one.severity == severity
        assert ("clients/go-1 continues until" in one.summary) == (severity == "INFO")


def test_brokers_and_logs_are_apart() -> None:
    rows = [missing(0, 60), missing(0, 60, broker="c"), missing(0, 60, log="go-2")]
    assert len([*found_in_cluster(NO_ADDRESS, rows)]) == 3
    assert [*found_in_cluster(NO_ADDRESS, [fact("HEARTBEAT_FAILED", 0, broker_name="b")])] == []


def test_it_is_a_finding_on_the_cluster() -> None:
    _, rows = judge_cluster([missing(0, 60)], [], [], 24)
    (one,) = [row for row in rows if row["rule_id"] == "NO_BROKER_ADDRESS"]
    assert one["severity"] == "WARNING"
    assert one["consumer_group"] is None
