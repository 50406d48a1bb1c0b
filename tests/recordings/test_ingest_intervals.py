"""A member that sends heartbeats each 200 s: brokers expire it one by one, and it lives on
(recording `intervals-2`, group `beats`).
"""

from functools import cache

from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, rows
from tests.recordings.test_ingest_slaves import events_of, held, owned

NAME, GROUP = "intervals-2", "beats"
BROKERS = {"broker-a", "broker-b"}


@cache
def tables() -> Tables:
    return ingested_recording(NAME).tables


def at_one_broker() -> list[Row]:
    found = events_of(tables(), "CONSUMER_JOIN", "CONSUMER_LEAVE", "CONSUMER_LOST")
    return [row for row in found if row.get("broker_name") is not None]


def test_expiry_and_return_are_each_broker_s_own() -> None:
    seen = [(row["event_type"], row["broker_name"], row.get("detail")) for row in at_one_broker()]
    lost, back = ("CONSUMER_LOST", "EXPIRED"), ("CONSUMER_JOIN", None)
    assert [(kind, detail) for kind, _, detail in seen] == [lost, back] * 3 + [lost]
    assert [broker for _, broker, _ in seen] == ["broker-b"] * 2 + ["broker-a"] * 2 + [
        "broker-b",
        "broker-b",
        "broker-a",
    ]
    assert {row["consumer_group"] for row in at_one_broker()} == {GROUP}
    processes = {(row["client_id"], row["channel_id"]) for row in at_one_broker()}
    whole = [row for row in events_of(tables(), "CONSUMER_JOIN") if "broker_name" not in row]
    assert len(processes) == 1
    assert processes < {(row["client_id"], row["channel_id"]) for row in whole}


def test_the_process_stays_in_the_ledger_with_what_it_holds() -> None:
    ledger = ledger_of(tables())
    assert ledger["rejected"] == []
    epochs = [row for row in ledger["epochs"] if row["consumer_group"] == GROUP]
    assert [row["causes"] for row in epochs] == [["CONSUMER_JOIN"]] * 2
    times = [row["event_ms"] for row in at_one_broker()]
    end_ms = max(row["t"] for row in rows(DATA / NAME / "events.jsonl"))
    for at_ms in (times[0] - 5_000, times[3] + 5_000, times[4] - 5_000, times[-1] + 1_000):
        assert at_ms < end_ms
        assert held(ledger, GROUP, at_ms) == owned(NAME, GROUP, at_ms), at_ms


def test_only_intervals_of_their_own_are_stated() -> None:
    stated = [r for r in tables()["observed_facts"] if r["kind"] == "HEARTBEAT_INTERVAL"]
    intervals = {(row["consumer_group"], row["details"]["interval_ms"]) for row in stated}
    assert intervals == {("beats", "200000"), ("mix", "5000")}
