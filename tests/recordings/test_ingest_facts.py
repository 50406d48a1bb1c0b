"""observed_facts of the recordings: what was planted there is stated, of healthy groups not."""

from functools import cache
from typing import Any

import pytest

from rebalance_core.contracts.observed import FACT_KINDS, OBSERVED_FACTS
from tests.recordings.tables import DATA, RECORDINGS, Row, ingested_recording

OPTIONAL = {column.name for column in OBSERVED_FACTS.columns if column.nullable}


@cache
def stated(name: str) -> Any:
    return ingested_recording(name).tables["observed_facts"]


def facts(name: str, kind: str, group: str | None = None) -> list[Row]:
    return [r for r in stated(name) if r["kind"] == kind and r["consumer_group"] == group]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_row_is_of_the_contract(name: str) -> None:
    (whole,) = facts(name, "COLLECTED")
    for row in stated(name):
        assert row["kind"] in FACT_KINDS
        assert list(row) == list(OBSERVED_FACTS.column_names)
        assert {column for column, value in row.items() if value is None} <= OPTIONAL
        assert all(isinstance(value, str) for value in row["details"].values())
        declared = FACT_KINDS[row["kind"]]
        assert None not in {row[column] for column in declared.about}, row
        fields = {field.name for field in declared.details}
        needed = {field.name for field in declared.details if not field.optional}
        assert needed <= row["details"].keys() <= fields, row
        assert row["first_ms"] <= row["last_ms"]
        assert row["times"] >= 1
    assert whole["first_ms"] < whole["last_ms"]
    dumps = [row for row in stated(name) if row["kind"] == "DUMP"]
    files = [path for path in (DATA / name / "collection/mqadmin").rglob("*") if path.is_file()]
    assert len(dumps) == len(files)


def test_two_processes_of_one_id_are_two_connections_at_each_broker() -> None:
    duplicated = [
        r for r in facts("nightly", "CONNECTION", "notify") if r["client_id"] == "172.17.0.2@notify"
    ]
    by_broker: dict[str, set[str]] = {}
    for row in duplicated:
        assert row["times"] == 1
        by_broker.setdefault(row["broker_name"], set()).add(row["details"]["client_addr"])
    # orders, which notify reads, lies on broker-a and broker-b
    assert {broker: len(found) for broker, found in by_broker.items()} == {
        "broker-a": 2,
        "broker-b": 2,
    }
    back = facts("nightly", "OFFSET_WENT_BACK", "notify")
    assert {r["broker_name"] for r in back} == {"broker-a"}
    assert any(", " in r["details"]["client_host"] for r in back), "two hosts commit one queue"
    assert all(
        int(r["details"]["lowest_asked"]) < int(r["details"]["highest_stored"]) for r in back
    )


def test_a_group_of_two_subscriptions_drops_topics_and_is_refused() -> None:
    dropped = facts("nightly", "TOPIC_DROPPED", "crm")
    assert {r["topic"] for r in dropped} == {"orders", "clicks"}
    (refused,) = facts("nightly", "NO_SUBSCRIPTION", "crm")
    assert (refused["topic"], refused["broker_name"]) == ("clicks", "broker-b")
    assert refused["times"] > 200
    assert refused["times"] <= (refused["last_ms"] - refused["first_ms"]) // 1000 + 1
    own = {(r["client_id"], r["topic"]) for r in facts("nightly", "CLIENT_TOPIC", "crm")}
    clients = {client for client, _ in own}
    assert len(own) == len(clients) == 2
    assert not facts("nightly", "TOPIC_DROPPED", "order-service")


def test_a_runtime_unsubscribe_shows_in_what_the_client_reports_last() -> None:
    at = max(r["first_ms"] for r in facts("nightly", "HELD_QUEUE", "search"))
    last = {
        (r["client_id"], r["topic"])
        for r in facts("nightly", "CLIENT_TOPIC", "search")
        if r["last_ms"] >= at
    }
    assert len({client for client, topic in last if topic == "stock"}) == 1


def test_order_locks_that_another_client_has() -> None:
    refused = facts("nightly", "LOCK_REFUSED", "stock-sync")
    assert {r["broker_name"] for r in refused} == {"broker-b", "broker-c"}
    assert all(r["client_id"] != r["details"]["owner"] for r in refused)
    assert facts("orderly", "LOCK_REFUSED", "ledger-posting")
    assert not facts("nightly", "LOCK_REFUSED", "order-service")


def test_a_deleted_group_has_no_configuration_left() -> None:
    assert facts("nightly", "GROUP_CONFIG", "report-old") == []
    assert {r["broker_name"] for r in facts("nightly", "GROUP_DELETED", "report-old")} == {
        "broker-a",
        "broker-b",
        "broker-c",
    }
    assert len(facts("nightly", "GROUP_CONFIG", "order-service")) == 3
    assert facts("nightly", "QUEUE_PROGRESS", "report-old"), "its offsets are left behind"
    at_broker = facts("nightly", "GROUP_AT_BROKER", "report-old")
    assert {r["details"]["members"] for r in at_broker} == {"0"}


def test_pathologies() -> None:
    at = {r["client_id"]: r for r in facts("pathologies", "CONNECTION", "p-dup")}
    rows = facts("pathologies", "CONNECTION", "p-dup")
    assert len(at) < len({(r["client_id"], r["details"]["client_addr"]) for r in rows})
    assert {r["topic"] for r in facts("pathologies", "NO_SUBSCRIPTION", "p-topics")} == {
        "orders",
        "refunds",
    }
    assert facts("pathologies", "NO_SUBSCRIPTION", "p-idle") == []


def test_a_lost_broker_gets_no_heartbeats() -> None:
    failed = facts("silent-loss", "HEARTBEAT_FAILED")
    assert {r["broker_name"] for r in failed} == {"broker-c"}
    assert all(r["details"]["address"] == "127.0.0.1:37040" for r in failed)
    assert facts("silent-loss", "NO_MEMBER_LIST", "order-service")
    (missed,) = facts("silent-loss", "NOT_IN_MEMBER_LIST", "order-service")
    assert missed["details"]["listed"] == "2"
    registered = facts("silent-loss", "BROKER_REGISTERED")
    assert {r["broker_name"]: r["details"]["registered"] for r in registered} == {
        "broker-a": "true",
        "broker-b": "true",
        "broker-c": "true",
    }


def test_4_9_states_the_same_in_its_own_words() -> None:
    assert facts("broker-loss-4.9", "GROUP_CREATED", "GID_trade")
    assert facts("scale-out-4.9", "NOT_IN_MEMBER_LIST", "GID_s_last")
    assert facts("scale-out-4.9", "NO_MEMBER_LIST", "GID_s_last")


def test_members_that_subscribe_differently_are_notified_all_the_time() -> None:
    told = {row["broker_name"]: row["times"] for row in facts("nightly", "NOTIFIED", "crm")}
    assert told == {"broker-a": 18, "broker-b": 19}
    healthy = facts("nightly", "NOTIFIED", "order-service")
    assert {row["times"] for row in healthy} <= {1, 2}
