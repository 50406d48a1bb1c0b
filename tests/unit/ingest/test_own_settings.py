"""Intervals of clients, and how brokers tell members of changes, as files show them."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.intervals import INTERVALS
from tests.recordings.tables import DATA

N5, N90, W5 = "10.0.0.4@21447#6327729062372", "10.0.0.5@21620#6339646464095", "10.0.0.1@"
OFF = "Replace, key: notifyConsumerIdsChangedEnable, value: true -> false"


def copied(folder: Path, name: str, settings: str = "", *left_out: str) -> Path:
    copy = folder / "c"
    shutil.copytree(DATA / name / "collection", copy, ignore=shutil.ignore_patterns(*left_out))
    toml = copy / "collection.toml"
    toml.write_text(toml.read_text() + settings)
    return copy


def intervals(done: Any) -> dict[str, dict[str, int]]:
    return {
        row["client_id"]: {name: row[name] for name in INTERVALS if row.get(name)}
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN" and any(row.get(name) for name in INTERVALS)
    }


@pytest.mark.parametrize("left_out", ["clients", "*consumerStatus*"])
def test_the_logs_and_the_answers_of_clients_tell_their_intervals(
    left_out: str, tmp_path: Path
) -> None:
    found = intervals(ingest_collection(copied(tmp_path, "intervals-2", "", left_out)))
    assert found[N5] == {
        "poll_name_server_interval_ms": 5_000,
        "heartbeat_broker_interval_ms": 5_000,
        "persist_consumer_offset_interval_ms": 1_000,
    }
    assert found[N90] == {"poll_name_server_interval_ms": 90_000}
    assert len(found) == 4


def test_what_is_not_printed_the_operator_states(tmp_path: Path) -> None:
    said = '[clients."10.0.0.1@*"]\nwait_interval_ms = 5000\n'
    group = '{"consumer_group": "mix", "poll_name_server_interval_ms": 90000}\n'
    folder = copied(tmp_path, "intervals-2", said)
    (folder / "consumer_groups.jsonl").write_text(group)
    done = ingest_collection(folder)
    found = {client: its for client, its in intervals(done).items() if client.startswith(W5)}
    (own,) = found.values()
    assert own["wait_interval_ms"] == 5_000
    (row,) = [r for r in done.tables["consumer_groups"] if r["consumer_group"] == "mix"]
    assert row["poll_name_server_interval_ms"] == 90_000
    assert N90 not in intervals(done)  # the group's


def test_a_group_s_switch_that_was_turned_is_off_for_all_its_windows(tmp_path: Path) -> None:
    """updateSubGroup at run time: the broker logs the group before and after."""
    folder = copied(tmp_path, "no-notices", "")
    log = folder / "brokers/broker-a/broker.log"
    lines = log.read_text().splitlines(keepends=True)
    config = (
        "SubscriptionGroupConfig{groupName=loud, notifyConsumerIdsChangedEnable=%s, brokerId=0}"
    )
    said = f"update subscription group config, old: {config % 'true'} new: {config % 'false'}"
    place = len(lines) // 2
    when = lines[place][:19]
    assert when.startswith("20")
    lines.insert(place, f"{when} INFO AdminBrokerThread_1 - {said}\n")
    log.write_text("".join(lines))
    before, after = (ingest_collection(each) for each in (DATA / "no-notices/collection", folder))
    notified = {
        row["consumer_group"]: row.get("notified") for row in after.tables["consumer_groups"]
    }
    assert notified == {"loud": False, "quiet": False}
    (one,) = [r for r in after.tables["findings"] if r["rule_id"] == "INGEST_NOTICES_CHANGED"]
    assert (one["consumer_group"], one["severity"]) == ("loud", "INFO")
    assert f"broker.log:{place + 1}" in one["summary"]
    assert not [r for r in before.tables["findings"] if r["rule_id"] == one["rule_id"]]
    assert {r["consumer_group"]: r.get("notified") for r in before.tables["consumer_groups"]} == {
        "loud": None,
        "quiet": False,
    }


def test_an_interval_that_no_client_means_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    folder = copied(tmp_path, "intervals-2", "", "clients")
    for path in folder.glob("mqadmin/*consumerStatus-mix/10.0.0.5*"):
        text = path.read_text()
        path.write_text(
            text.replace(
                "pollNameServerInterval                  : 90000",
                "pollNameServerInterval                  : 90",
            )
        )
    done = ingest_collection(folder)
    (one,) = [r for r in done.tables["findings"] if r["rule_id"] == "INGEST_INTERVAL_REFUSED"]
    assert (one["client_id"], one["severity"]) == (N90, "INFO")
    assert "poll_name_server_interval_ms" in one["summary"]
    joins = [r for r in done.tables["cluster_events"] if r.get("client_id") == N90]
    assert joins
    assert N90 not in intervals(done)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ('[clients."x"]\nwait_interval = 5000\n', "unknown key clients.x.wait_interval; did you"),
        ('[clients."x"]\nwait_interval_ms = 5\n', "is not an interval; valid: 100 to 3600000"),
        ('[clients."x"]\nwait_interval_ms = "5s"\n', "= '5s' is not an interval"),
        ("[clients]\nx = 5\n", "clients must be a table of tables"),
    ],
)
def test_wrong_settings_of_clients_are_refused(settings: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(InputRefused) as refusal:
        ingest_collection(copied(tmp_path, "intervals-2", settings))
    assert wrong in str(refusal.value)


def notices(done: Any) -> list[tuple[str, str]]:
    return [
        (row["broker_name"], row["detail"])
        for row in done.tables["cluster_events"]
        if row["event_type"] == "NOTICES"
    ]


def test_brokers_say_in_their_logs_how_they_tell_members(tmp_path: Path) -> None:
    folder = copied(tmp_path, "no-notices")
    assert notices(ingest_collection(folder)) == [("broker-a", "OFF"), ("broker-b", "OFF")]
    log = folder / "brokers/broker-a/broker.log"
    text = log.read_text()
    line = next(each for each in text.splitlines() if OFF in each)
    back = line.replace("true -> false", "false -> true").replace("07:07:18", "07:08:00")
    log.write_text(f"{text}{back}\n")
    rows = notices(ingest_collection(folder))
    assert rows == [("broker-a", "OFF"), ("broker-b", "OFF"), ("broker-a", "ON")]


@pytest.mark.parametrize(
    ("setting", "mode"),
    [("notifyConsumerIdsChangedEnable", "OFF"), ("realTimeNotifyConsumerChange", "BATCHED")],
)
def test_a_broker_that_starts_so_sends_no_notices_from_its_start_on(
    setting: str, mode: str, tmp_path: Path
) -> None:
    folder = copied(tmp_path, "no-notices")
    for log in folder.glob("brokers/*/broker.log"):
        lines = [
            each for each in log.read_text().splitlines() if "Replace, key: notify" not in each
        ]
        log.write_text("\n".join(lines).replace(f"{setting}=true", f"{setting}=false") + "\n")
    done = ingest_collection(folder)
    assert sorted(notices(done)) == [("broker-a", mode), ("broker-b", mode)]
    first = min(r["event_ms"] for r in done.tables["cluster_events"] if r.get("client_id"))
    assert all(
        r["event_ms"] < first for r in done.tables["cluster_events"] if r["event_type"] == "NOTICES"
    )


def test_without_their_logs_dumps_say_it(tmp_path: Path) -> None:
    done = ingest_collection(copied(tmp_path, "no-notices", "", "broker.log"))
    assert sorted(notices(done)) == [("broker-a", "OFF"), ("broker-b", "OFF")]


def test_the_groups_switch_is_in_its_store(tmp_path: Path) -> None:
    done = ingest_collection(copied(tmp_path, "no-notices"))
    found = {r["consumer_group"]: r.get("notified") for r in done.tables["consumer_groups"]}
    assert found == {"quiet": False, "loud": None}


def retention(done: Any) -> list[tuple[str, str]]:
    return [
        (row["broker_name"], row["details"]["hours"])
        for row in done.tables["observed_facts"]
        if row["kind"] == "MESSAGE_RETENTION"
    ]


def test_how_long_masters_keep_messages_is_in_their_logs_and_in_dumps(tmp_path: Path) -> None:
    folder = copied(tmp_path, "no-notices")
    by_dumps = retention(ingest_collection(folder))
    assert sorted(by_dumps) == [("broker-a", "48"), ("broker-b", "48")]
    log = folder / "brokers/broker-a/broker.log"
    text = log.read_text()
    replaced = OFF.replace(
        "notifyConsumerIdsChangedEnable, value: true -> false", "fileReservedTime, value: 48 -> 6"
    )
    line = next(each for each in text.splitlines() if OFF in each).replace(OFF, replaced)
    log.write_text(f"{text}{line}\n")
    assert ("broker-a", "6") in retention(ingest_collection(folder))
    for dump in folder.glob("mqadmin/*getBrokerConfig*"):
        dump.write_text(re.sub(r"(brokerId +=  )0", r"\g<1>1", dump.read_text()))
    assert retention(ingest_collection(folder)) == [("broker-a", "6")]
