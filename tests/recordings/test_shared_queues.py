"""Every answer of the recorded brokers, and every first delivery, lies in what the ledger says."""

import json
from functools import cache

import pytest

from tests.recordings.recorded_events import tables_of
from tests.recordings.shared_queues import (
    Agreement,
    answers,
    check_answers,
    check_deliveries,
    deliveries,
    shared_at,
)
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, rows

NAME = "pop"
LATE_MS = 8_000
"""A client says that it has started after its brokers knew it; the recorder's machine was busy."""
HELD_MS = 16_000
"""What a client had pulled or popped of a queue that it gave up, it still consumed."""
POP_A: Row = {"subscriptions": ("PopA",), "client_version": "5.5.0", "broker_version": "5.5.0"}
POP_S = POP_A | {"subscriptions": ("PopS",)}
ASKS = {"rebalance_mode": "BROKER"}
GROUPS = {
    "g-pull": POP_A,
    "g-srvpull": POP_A | ASKS,
    **{f"pop-{name}": POP_A | ASKS for name in ("m1", "0", "1", "2", "mixed", "switch")},
    "pop-circ": POP_A | ASKS | {"strategy": "AVG_BY_CIRCLE"},
    "pop-orderly": POP_A | ASKS | {"ordered": True},
    **{f"pops-{name}": POP_S | ASKS for name in "012"},
}
PULLS_IN_MIXED = "c2"  # clientRebalance=true, the default
PROXIES = "grpc"
PROXY: Row = {"rebalance_mode": "PROXY"}
PROXY_GROUPS = {
    "g-push": PROXY | {"subscriptions": ("GA",)},
    "g-slow": PROXY | {"subscriptions": ("GA",)},
    "g-fifo": PROXY | {"subscriptions": ("GF",), "ordered": True},
    "g-simple": PROXY | {"subscriptions": ("GS",)},
    "g-remote": {"subscriptions": ("GR",)},
}
SYSTEM_GROUP = "CID_DefaultHeartBeatSyncerTopic"  # of the proxies themselves, BROADCASTING
FROM_FILES, FROM_EVENTS = "the operators' files", "the recorder's events"


@cache
def ledger(source: str) -> Tables:
    if source == FROM_FILES:
        return ledger_of(ingested_recording(NAME).tables)
    tables = tables_of(NAME, GROUPS)
    lines = rows(DATA / NAME / "truth" / f"{PULLS_IN_MIXED}.jsonl")
    pulls = {line["client_id"] for line in lines if line["kind"] == "started"}
    for row in tables["cluster_events"]:
        joined = row["event_type"] == "CONSUMER_JOIN" and row["client_id"] in pulls
        if joined and row["consumer_group"] == "pop-mixed":
            row["rebalance_mode"] = "CLIENT"
    return ledger_of(tables)


def checked_answers(tables: Tables) -> Agreement:
    return check_answers(tables, answers(NAME), LATE_MS, frozenset({"pop-orderly"}))


def checked_deliveries(tables: Tables) -> Agreement:
    return check_deliveries(tables, deliveries(NAME), LATE_MS, HELD_MS)


@pytest.mark.parametrize(
    ("source", "facts", "exact"), [(FROM_EVENTS, 11_809, 5_224), (FROM_FILES, 11_798, 5_178)]
)
def test_every_answer_is_what_the_ledger_has(source: str, facts: int, exact: int) -> None:
    """The figures are those of docs/fidelity.md."""
    result = checked_answers(ledger(source))
    assert result.mismatches == []
    assert (result.facts, result.exact) == (facts, exact)


@pytest.mark.parametrize("source", [FROM_EVENTS, FROM_FILES])
def test_every_first_delivery_lies_in_the_reach_of_its_client(source: str) -> None:
    result = checked_deliveries(ledger(source))
    assert result.mismatches == []
    assert result.facts == 19_883 + 11_019  # by POP and by PULL


@pytest.mark.parametrize("source", [FROM_EVENTS, FROM_FILES])
def test_control_groups_share_nothing(source: str) -> None:
    tables = ledger(source)
    end_ms = json.loads((DATA / NAME / "cluster.json").read_text())["end_ms"]
    for group in ("g-pull", "g-srvpull", "pop-orderly"):
        assert not [row for row in tables["pop_reach"] if row["consumer_group"] == group]
    for epoch in tables["epochs"]:
        shared = shared_at(tables, epoch["consumer_group"], epoch["from_ms"])
        assert bool(shared) == (epoch["pop_queues"] > 0 and epoch["members"] > 0)
    assert shared_at(tables, "pop-switch", end_ms - 1) == set()


@pytest.mark.parametrize("check", [checked_answers, checked_deliveries])
@pytest.mark.parametrize("table", ["ownership", "pop_reach"])
def test_a_wrong_ledger_is_reported(check: object, table: str) -> None:
    wrong = dict(ledger(FROM_EVENTS))
    wrong[table] = [row | {"broker_name": "broker-c"} for row in wrong[table]]
    assert callable(check)
    assert len(check(wrong).mismatches) > 50


@cache
def behind_proxies(source: str) -> Tables:
    if source == FROM_FILES:
        return ledger_of(ingested_recording(PROXIES).tables)
    return ledger_of(tables_of(PROXIES, PROXY_GROUPS))


@pytest.mark.parametrize("source", [FROM_EVENTS, FROM_FILES])
def test_every_delivery_behind_a_proxy_lies_in_the_reach_of_its_client(source: str) -> None:
    result = check_deliveries(behind_proxies(source), deliveries(PROXIES), LATE_MS, HELD_MS)
    assert result.mismatches == []
    assert result.facts == 8_625  # 14 of them again


@pytest.mark.parametrize("source", [FROM_EVENTS, FROM_FILES])
def test_clients_behind_a_proxy_reach_whole_brokers_and_of_a_fifo_topic_every_queue(
    source: str,
) -> None:
    tables = behind_proxies(source)
    reached: dict[str, set[int]] = {}
    for row in tables["pop_reach"]:
        reached.setdefault(row["consumer_group"], set()).add(row["queue_id"])
    assert reached == {"g-push": {-1}, "g-slow": {-1}, "g-simple": {-1}, "g-fifo": {0, 1}}
    owners = {row["consumer_group"] for row in tables["ownership"] if row["client_id"]}
    assert owners - {SYSTEM_GROUP} == {"g-remote"}  # a remoting client, alone
    unreached = [row for row in tables["pop_metrics"] if row["clients"] and row["unreached"]]
    assert unreached == []
