"""Where the retry topic of a group lies, by what brokers log and list of it."""

from pathlib import Path
from typing import Any

from rebalance_core.ingest.in_process import ingest_collection

RETRY = "%RETRY%g"
CREATED = (
    "2026-11-21 11:28:55 INFO HeartbeatThread_2 - create new topic TopicConfig [topicName={topic}, "
    "readQueueNums={queues}, writeQueueNums={queues}, perm=RW-, topicFilterType=SINGLE_TAG, "
    "topicSysFlag=0, order=false, attributes={{}}]\n"
)
CONNECTED = (
    "2026-11-21 11:28:55 INFO HeartbeatThread_2 - new consumer connected, group: g "
    "CONSUME_PASSIVELY CLUSTERING channel: ClientChannelInfo [channel=[id: 0x86dde5d6, "
    "L:/10.0.1.1:10911 - R:/10.0.0.2:41414], clientId=10.0.0.2@20078#1, language=JAVA, "
    "version=479, lastUpdateTimestamp=1795231735135]\n"
)


def retry_configs(folder: Path, **logs: str) -> dict[str, tuple[int, int]]:
    """Broker -> (ms in its minute, read queues) of each TOPIC_CONFIG of the retry topic."""
    (folder / "collection.toml").write_text('cluster = "C"\n')
    for broker, text in logs.items():
        log = folder / "brokers" / f"broker-{broker}" / "broker.log"
        log.parent.mkdir(parents=True)
        log.write_text(text)
    rows: Any = ingest_collection(folder).tables["cluster_events"]
    return {
        row["broker_name"]: (row["event_ms"] % 60_000, row["read_queue_nums"])
        for row in rows
        if row["event_type"] == "TOPIC_CONFIG" and row["topic"] == RETRY
    }


def test_it_is_dated_before_the_join_that_creates_it(tmp_path: Path) -> None:
    created = CREATED.format(topic=RETRY, queues=2)
    assert retry_configs(tmp_path, a=created + CONNECTED) == {"broker-a": (55_000, 2)}


def test_a_broker_that_logged_a_connection_has_it_where_no_file_states_it(tmp_path: Path) -> None:
    a = CREATED.format(topic=RETRY, queues=2) + CONNECTED
    assert retry_configs(tmp_path, a=a, b=CONNECTED, c=CONNECTED.replace(" g ", " other ")) == {
        "broker-a": (55_000, 2),
        "broker-b": (55_000, 1),
    }


def test_a_connection_of_a_proxy_creates_none(tmp_path: Path) -> None:
    grpc = CONNECTED.replace(
        "channel=[id: 0x86dde5d6, L:/10.0.1.1:10911 - R:/10.0.0.2:41414]",
        "channel=GrpcClientChannel{clientId=x, remoteAddress=10.0.0.2:41414, "
        "localAddress=10.0.1.1:8081}",
    )
    assert retry_configs(tmp_path, a=CONNECTED, b=grpc) == {"broker-a": (55_000, 1)}
