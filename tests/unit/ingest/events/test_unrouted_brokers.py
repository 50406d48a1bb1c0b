"""Topics created at a broker that no name server has yet."""

from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection

# Lines of 5.1.4, shortened.
BROKER = (
    "2026-11-24 00:34:34 INFO main - brokerPermission=6\n"
    "2026-11-24 00:34:35 INFO main - The broker[mq3, 127.0.0.1:24140] boot success. "
    "serializeType=JSON and name server is 127.0.0.1:24000\n"
    "2026-11-24 00:34:36 INFO AdminBrokerThread_1 - create new topic [TopicConfig [topicName=T, "
    "readQueueNums=1, writeQueueNums=1, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, "
    "order=false, attributes={}]]\n"
)
CREATED_MS = 1795451676500  # 16:34:36 UTC, in the middle of the second
REGISTERED = (
    "2026-11-24 {} INFO RemotingExecutorThread_3 - new broker registered, BrokerIdentityInfo "
    "[clusterName=c, brokerAddr=127.0.0.1:24140] HAService: 127.0.0.1:24142\n"
)


def tables(folder: Path, *names: str, broker: str = BROKER) -> Any:
    (folder / "collection.toml").write_text('cluster = "c"\n')
    for path, text in (
        ("brokers/mq3/broker.log", broker),
        ("namesrv/n/namesrv.log", "".join(names)),
    ):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    return ingest_collection(folder).tables


@pytest.mark.parametrize(
    ("at", "delay_ms"),
    [
        ("00:34:45", 9_000),
        ("00:34:35", 0),
        ("00:38:45", 0),  # no first registration: the name server's log lacks it
    ],
)
def test_a_topic_of_a_new_broker_has_a_route_when_the_broker_has(
    at: str, delay_ms: int, tmp_path: Path
) -> None:
    found = tables(tmp_path, REGISTERED.format(at))
    (row,) = [one for one in found["cluster_events"] if one["event_type"] == "TOPIC_CONFIG"]
    assert row["event_ms"] - CREATED_MS == delay_ms
    (queue,) = found["queue_offsets"]
    assert (queue["observed_ms"], queue["max_offset"]) == (CREATED_MS, 0)  # empty since then


def test_a_broker_that_was_there_before_had_a_route(tmp_path: Path) -> None:
    before = BROKER.splitlines(keepends=True)[2].replace("00:34:36", "00:30:00")
    found = tables(tmp_path, REGISTERED.format("00:34:45"), broker=before + BROKER)
    rows = [row for row in found["cluster_events"] if row["event_type"] == "TOPIC_CONFIG"]
    assert [row["event_ms"] for row in rows] == [CREATED_MS - 276_000]
