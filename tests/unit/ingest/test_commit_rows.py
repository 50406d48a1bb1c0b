"""What becomes a row of committed_offsets."""

from pathlib import Path
from typing import Any

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.events.committed_offsets import commit_row
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.in_process import ingest_collection

CONTEXT = ClusterContext("c", 0, 1_000_000)
QUEUE = {"topic": "R", "queue_id": 2}


def row_of(kind: str, at_ms: int, **values: Any) -> tuple[Any, ...]:
    piece = Evidence("commit", "off", kind, at_ms, "mq1", 0, "x:1", QUEUE | values)
    row = commit_row(piece, CONTEXT)
    assert row is not None
    return (row["observed_ms"], row["committed_offset"], row["broker_name"])


def test_what_a_broker_logs_is_so_at_the_end_of_its_second() -> None:
    """The clients' own lines have milliseconds: one of the same second may be older."""
    assert row_of("offset_reset", 5_000, broker="mq1", offset=4) == (5_999, 4, "mq1")
    assert row_of("offset_went_back", 5_000, asked=4, stored=12, host="h") == (5_999, 4, "mq1")
    assert row_of("committed", 5_300, broker="mq1", offset=12, client_id="a") == (5_300, 12, "mq1")


def test_a_refused_commit_leaves_the_reset_as_it_was() -> None:
    """The client's log says that it committed 12."""
    reset = ("off", "R", "mq1", 2)
    context = ClusterContext(
        "c", 0, 1_000_000, resets={reset: ((2_000, 3), (4_000, 4), (9_000, 5))}
    )
    refused = Evidence("commit", "off", "commit_refused", 5_000, "mq1", 0, "x:1", QUEUE)
    row = commit_row(refused, context)
    assert row is not None
    assert (row["observed_ms"], row["committed_offset"], row.get("client_id")) == (5_999, 4, None)
    assert commit_row(refused, CONTEXT) is None


def test_a_commit_that_went_back_is_a_commit(tmp_path: Path) -> None:
    """4.9 resets the offsets of a group that is offline by commits of mqadmin."""
    (tmp_path / "collection.toml").write_text('cluster = "c"\n')
    log = tmp_path / "brokers" / "mq1" / "broker.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "2026-11-24 00:44:15 WARN ConsumerManageThread_10 - [NOTIFYME]update consumer offset less "
        "than store. clientHost=127.0.0.1:50578, key=R@off, queueId=2, requestOffset=4, "
        "storeOffset=12\n"
    )
    tables = ingest_collection(tmp_path).tables
    assert [
        (row["consumer_group"], row["broker_name"], row["queue_id"], row["committed_offset"])
        for row in tables["committed_offsets"]
    ] == [("off", "mq1", 2, 4)]
    assert [row["kind"] for row in tables["observed_facts"] if row["consumer_group"] == "off"] == [
        "OFFSET_WENT_BACK"
    ]
