"""Times that are off by a whole zone: named, and read as corrected."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.unit.ingest.skewed_clocks import BEAT_MS, HEARTBEAT_LOG, JOIN, ingested

HOUR_MS = 3_600_000


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
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format("11:28:55", BEAT_MS),
    }
    tables = ingested(tmp_path, files, f'[time_zones]\n"clients/c/*" = "{zone}"\n')
    assert [off in text for text in zones(tables)] == [True] * bool(off)


def test_a_client_that_ran_for_long_has_an_old_subscription_and_no_wrong_clock(
    tmp_path: Path,
) -> None:
    """8 h before, to the second; its log ends with the broker's."""
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format("11:28:55", BEAT_MS - 8 * HOUR_MS),
    }
    tables = ingested(tmp_path, files, '[time_zones]\n"clients/c/*" = "Asia/Shanghai"\n')
    assert zones(tables) == []


def test_two_joins_of_one_second_stay_two_though_the_times_in_them_are_off(tmp_path: Path) -> None:
    """Who came first had all queues, and may have committed before the second came."""
    second = JOIN.replace("clientId=c1", "clientId=c2")
    log = JOIN.format("11:28:53", BEAT_MS) + second.format("11:28:53", BEAT_MS + 700)
    events = ingested(tmp_path, {"brokers/a/broker.log": log})["cluster_events"]
    (first_ms, one), (second_ms, other) = (
        (row["event_ms"], row["client_id"])
        for row in events
        if row["event_type"] == "CONSUMER_JOIN"
    )
    assert (one, other) == ("c1", "c2")
    assert 0 < second_ms - first_ms < 1_000


@pytest.mark.parametrize(("hour", "ends_at"), [("11", "11:29:55"), ("19", "11:28:55")])
def test_a_client_whose_clock_is_hours_ahead_does_not_make_all_else_old(
    hour: str, ends_at: str, tmp_path: Path
) -> None:
    files = {
        "brokers/a/broker.log": JOIN.format("11:28:55", BEAT_MS),
        "clients/c/rocketmq_client.log": HEARTBEAT_LOG.format(f"{hour}:29:55", BEAT_MS),
    }
    rows = ingested(tmp_path, files, '[time_zones]\n"clients/*" = "Asia/Shanghai"\n')[
        "observed_facts"
    ]
    (collected,) = (row for row in rows if row["kind"] == "COLLECTED")
    end = datetime.fromtimestamp(collected["last_ms"] // 1000, timezone(timedelta(hours=8)))
    assert f"{end:%H:%M:%S}" == ends_at
