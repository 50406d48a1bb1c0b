"""Times that are off by a whole zone: named, and read as corrected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection

BEAT_MS = 1_795_231_735_100  # 2026-11-21 11:28:55 GMT+8
JOIN = (
    "2026-11-21 {} INFO t - new consumer connected, group: g CONSUME_PASSIVELY CLUSTERING "
    "channel: ClientChannelInfo [channel=[id: 0x1, L:/1.1.1.1:1 - R:/2.2.2.2:2], clientId=c1, "
    "language=JAVA, version=479, lastUpdateTimestamp={}]\n"
)
BEAT = (
    "2026-11-21 {},687 INFO RocketmqClient - HeartbeatData [clientID=c1, producerDataSet=[], "
    "consumerDataSet=[ConsumerData [groupName=g, consumeType=CONSUME_PASSIVELY, "
    "messageModel=CLUSTERING, consumeFromWhere=CONSUME_FROM_LAST_OFFSET, unitMode=false, "
    "subscriptionDataSet=[SubscriptionData [classFilterMode=false, topic=T, subString=*, "
    "tagsSet=[], codeSet=[], subVersion={}, expressionType=TAG]]]]]\n"
)
HOUR_MS = 3_600_000


def ingested(folder: Path, files: Mapping[str, str], settings: str = "") -> Any:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "collection.toml").write_text(f'cluster = "C"\n{settings}')
    return ingest_collection(folder).tables


def zones(tables: Any) -> list[str]:
    found = [row for row in tables["findings"] if row["rule_id"] == "INGEST_TIME_ZONE"]
    return [row["summary"] for row in found]


def joins(tables: Any) -> list[int]:
    rows = tables["cluster_events"]
    return [row["event_ms"] for row in rows if row["event_type"] == "CONSUMER_JOIN"]


@pytest.mark.parametrize(
    ("head", "off"),
    [("11:28:55", ""), ("03:28:55", "8 h"), ("16:58:55", "5 h 30 min"), ("11:43:55", "")],
)
def test_a_broker_s_log_is_off_by_the_beats_that_it_prints(
    tmp_path: Path, head: str, off: str
) -> None:
    tables = ingested(tmp_path, {"brokers/a/broker.log": JOIN.format(head, BEAT_MS)})
    (joined,) = joins(tables)
    assert [off in text and "brokers/a" in text for text in zones(tables)] == [True] * bool(off)
    assert (joined == BEAT_MS) is (head != "11:43:55")


def test_a_log_with_lines_of_two_zones_is_left_as_it_is(tmp_path: Path) -> None:
    lines = JOIN.format("03:28:55", BEAT_MS) + JOIN.format("11:28:56", BEAT_MS + 1000)
    assert zones(ingested(tmp_path, {"brokers/a/broker.log": lines})) == []


@pytest.mark.parametrize(
    ("zone", "off"),
    [("Asia/Shanghai", ""), ("UTC", "8 h, all too late"), ("Asia/Tokyo", "1 h, all too early")],
)
def test_the_zone_of_a_client_s_host_by_its_heartbeats(tmp_path: Path, zone: str, off: str) -> None:
    """Its lines are local time, 11:28 in Shanghai."""
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": BEAT.format("11:28:55", BEAT_MS),
    }
    tables = ingested(tmp_path, files, f'[time_zones]\n"clients/c/*" = "{zone}"\n')
    assert [off in text for text in zones(tables)] == [True] * bool(off)


def test_a_client_that_ran_for_long_has_an_old_subscription_and_no_wrong_clock(
    tmp_path: Path,
) -> None:
    """8 h before, to the second; its log ends with the broker's."""
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": BEAT.format("11:28:55", BEAT_MS - 8 * HOUR_MS),
    }
    tables = ingested(tmp_path, files, '[time_zones]\n"clients/c/*" = "Asia/Shanghai"\n')
    assert zones(tables) == []
