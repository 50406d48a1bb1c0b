"""The recording `slave` as a cluster would have logged it whose slaves act as master.

None of the recordings is of such a cluster. What differs is what rocketmq.md §15 says: properties
at the start, the slave's line when it takes over, the perm that comes back with the master, and
routes in which the slave stands under id 0.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import Row, Tables, ledger_of
from tests.recordings.test_ingest_slaves import (
    collection_without,
    events_of,
    owned,
    rest_points,
    tables,
)
from tests.recordings.truth import covers

NAME = "slave"
SLAVES = {"broker-a": "127.0.0.1:26040", "broker-b": "127.0.0.1:26050"}
TAKES_OVER = {"broker-a-s": "2026-11-22 15:25:15", "broker-b-s": "2026-11-22 15:30:18"}
RETURNS = {"broker-a": "2026-11-22 15:28:40", "broker-b": "2026-11-22 15:34:02"}
QUEUES = "QueueData [brokerName={}, readQueueNums=4, writeQueueNums=4, perm={}, topicSysFlag=0]"


def acting_collection(folder: Path, *missing: str, lists_acting: bool = False) -> Path:
    """The collection with what an acting master changes; ``lists_acting``: in clusterList, too."""
    copied = collection_without(NAME, folder, *missing)
    for log in copied.glob("namesrv/namesrv.log"):
        log.write_text("\n".join(_name_server(log.read_text().splitlines())) + "\n")
    for log in copied.glob("brokers/*/broker.log"):
        lines = log.read_text().splitlines()
        lines.insert(1, f"{lines[1][:19]} INFO main - enableSlaveActingMaster=true")
        name = log.parent.name
        if name in TAKES_OVER:
            address = SLAVES[name.removesuffix("-s")]
            lines.append(
                f"{TAKES_OVER[name]} INFO BrokerControllerScheduledThread1 - "
                f"Min broker changed, old: 0-null, new 1-{address}"
            )
        log.write_text("\n".join(lines[:1] + sorted(lines[1:], key=lambda line: line[:19])) + "\n")
    for dump in copied.glob("mqadmin/*-topicRoute-*"):
        dump.write_text(_route(dump.read_text()))
    for dump in copied.glob("mqadmin/*-clusterList*") if lists_acting else ():
        text = dump.read_text()
        for name, address in SLAVES.items():
            if not re.search(rf"{name} +0 ", text):
                text = re.sub(rf"({name} +)1( +{address})", r"\g<1>0\2", text)
        dump.write_text(text)
    return copied


def _name_server(lines: list[str]) -> Iterator[str]:
    yield f"{lines[0][:19]} INFO main - supportActingMaster=true"
    seen = set()
    for line in lines:
        for broker, second in RETURNS.items():
            if line.startswith(second) and "new broker registered" in line:
                seen.add(broker)
                old, new = QUEUES.format(broker, 4), QUEUES.format(broker, 6)
                yield (
                    f"{second} INFO RemotingExecutorThread_7 - topic changed, OrderTopic "
                    f"OLD: {old} NEW: {new}"
                )
        yield line
    assert seen == set(RETURNS)


def _route(text: str) -> str:
    text = text.replace('"enableActingMaster":false', '"enableActingMaster":true')
    for name, address in SLAVES.items():
        if f'1:"{address}"' in text and not re.search(rf'0:"[^"]+",\s*1:"{address}"', text):
            text = text.replace(f'1:"{address}"', f'0:"{address}"')
            text = re.sub(rf'("brokerName":"{name}",\s*"perm":)6', r"\g<1>4", text)
    return text


@cache
def acting(*missing: str, lists_acting: bool = False) -> Tables:
    with TemporaryDirectory() as folder:
        made = acting_collection(Path(folder), *missing, lists_acting=lists_acting)
        return ingest_collection(made).tables


VARIANTS = [((), False), ((), True), (("brokers/broker-?",), True), (("brokers/broker-?-s",), True)]


def event_tuples(found: Tables) -> list[tuple[object, ...]]:
    kinds = ("BROKER_UP", "BROKER_DOWN", "TOPIC_CONFIG", "TOPIC_DELETED")
    return sorted(
        (r["event_type"], r["broker_name"], r.get("topic") or "", r.get("perm") or 0)
        for r in events_of(found, *kinds)
    )


def test_the_collection_is_changed() -> None:
    with TemporaryDirectory() as folder:
        made = acting_collection(Path(folder), lists_acting=True)
        routes = [path.read_text() for path in made.glob("mqadmin/*-topicRoute-*")]
        assert sum('"perm":4' in text for text in routes) == 3
        assert all('"enableActingMaster":true' in text for text in routes)
        lists = [path.read_text() for path in made.glob("mqadmin/*-clusterList*")]
        assert sum(bool(re.search(r"broker-a +0 +127.0.0.1:26040", text)) for text in lists) == 2
        assert "topic changed, OrderTopic" in (made / "namesrv" / "namesrv.log").read_text()


@pytest.mark.parametrize(("missing", "lists_acting"), VARIANTS)
def test_the_slaves_act_and_make_no_broker_and_no_topic_change(
    missing: tuple[str, ...], lists_acting: bool
) -> None:
    found = acting(*missing, lists_acting=lists_acting)
    turns = [
        (r["event_type"], r["broker_name"], r.get("detail"))
        for r in events_of(found, "MASTER_DOWN", "MASTER_UP")
    ]
    assert turns == [
        ("MASTER_DOWN", "broker-a", "ACTING"),
        ("MASTER_UP", "broker-a", None),
        ("MASTER_DOWN", "broker-b", "ACTING"),
        ("MASTER_UP", "broker-b", None),
    ]
    assert event_tuples(found) == event_tuples(tables(NAME))
    assert {row["rule_id"] for row in found["findings"]} <= {
        *(row["rule_id"] for row in tables(NAME)["findings"]),
        "INGEST_BROKER_LOG_MISSING",
    }


def test_without_the_name_server_s_log_too() -> None:
    found = acting("namesrv")
    modes = [r.get("detail") for r in events_of(found, "MASTER_DOWN")]
    assert modes == ["ACTING"] * 2
    assert all(
        r.get("perm") in (None, 6)
        for r in events_of(found, "TOPIC_CONFIG")
        if r["topic"] == "OrderTopic"
    )


def test_what_a_slave_answers_for_its_broker_makes_no_member() -> None:
    """Recorded on 5.2.0: asked for the broker, the acting slave lists its own connections."""
    with TemporaryDirectory() as folder:
        made = acting_collection(Path(folder))
        renamed = 0
        for dump in sorted(made.glob("mqadmin/*-consumerConnection-*-s.txt")):
            at_ms, command = dump.name.split("-", 1)
            broker = command.removesuffix("-s.txt") + ".txt"
            asked = [int(p.name.split("-", 1)[0]) for p in made.glob(f"mqadmin/*-{broker}")]
            if all(abs(int(at_ms) - other) > 10_000 for other in asked):  # the master is gone
                dump.rename(dump.with_name(f"{at_ms}-{broker}"))
                renamed += 1
        assert renamed >= 4
        found = ingest_collection(made).tables
    kinds = "CONSUMER_JOIN", "CONSUMER_LEAVE", "CONSUMER_LOST"
    assert events_of(found, *kinds) == events_of(acting(), *kinds)
    assert found["findings"] == acting()["findings"]


def test_with_dumps_alone_the_slave_s_place_in_the_route_shows() -> None:
    found = acting("namesrv", "brokers", "clients")
    assert [r.get("detail") for r in events_of(found, "MASTER_DOWN")] == ["ACTING"] * 2
    assert {r["perm"] for r in events_of(found, "TOPIC_CONFIG")} == {6}


def held(ledger: Tables, group: str, at_ms: int) -> set[tuple[str, int, str]]:
    return {
        (row["broker_name"], row["queue_id"], row["client_id"])
        for row in ledger["ownership"]
        if row["consumer_group"] == group and covers(row, at_ms) and row["topic"] == "OrderTopic"
    }


def test_orderly_queues_that_move_have_owners_at_once() -> None:
    ledger = ledger_of(acting())
    epochs = [row for row in ledger["epochs"] if row["consumer_group"] == "ledger"]
    joined = [row for row in epochs if row["members"]]
    assert all(row["orphaned"] == 0 for row in joined)
    assert not any(c.startswith("MASTER") for row in epochs for c in row["causes"])
    assert any(row["masterless_queues"] for row in epochs)
    at_ms = rest_points(NAME)[-1]  # after all changes locks make no difference
    real = {
        (b, q, c)
        for c, queues in owned(NAME, "ledger", at_ms).items()
        for t, b, q in queues
        if t == "OrderTopic"
    }
    assert held(ledger, "ledger", at_ms) == real


def test_first_offsets_are_bounded_by_what_was_copied_and_are_never_failed() -> None:
    found = acting()
    down_ms = events_of(found, "MASTER_DOWN")[0]["event_ms"]
    up_ms = events_of(found, "MASTER_UP")[0]["event_ms"]
    starts: list[Row] = [
        row
        for row in ledger_of(found)["pull_starts"]
        if row["broker_name"] == "broker-a"
        and down_ms < row["earliest_ms"] < up_ms
        and row["topic"] == "OrderTopic"
    ]
    assert {row["consumer_group"] for row in starts} == {"ledger", "order-service"}
    assert all(row["status"] != "FAILED" for row in starts)
    assert all(row["start_offset_low"] <= row["start_offset"] for row in starts)
