"""What an earlier night alone showed of a group's clients, and how that is stated."""

import json
from typing import Any

import pytest

from rebalance_core.ingest.shown_earlier import (
    ShownEarlier,
    earlier_texts,
    earlier_until,
    shown_earlier,
)

Row = Any
NIGHT_MS = 1_795_232_835_000
BEFORE_MS = NIGHT_MS - 60_000


def row(kind: str, at_ms: int | None, source: str, place: str = "", **fields: Any) -> Row:
    return {
        "kind": kind,
        "at_ms": at_ms,
        "place": place,
        "source": source,
        "fields": json.dumps(fields),
    }


def allocated(at_ms: int, strategy: str, client: str = "c1") -> Row:
    return row("allocated", at_ms, "clients/k/a.log:7", strategy=strategy, client_id=client)


def status(at_ms: int, strategy: str | None = "AVG", version: str = "V5_3_3") -> Row:
    named: Row = {"strategy": strategy, "version": version, "client_file": "c1"}
    return row("client", at_ms, f"mqadmin/{at_ms}-consumerStatus-g/c1.txt", **named)


class Earlier(dict[str, int]):
    """Every file was read until the night began."""

    def get(self, name: str, default: Any = None) -> int:
        return NIGHT_MS - 1


def facts(*rows: Row, clients: tuple[str, ...] = ("c1",)) -> list[tuple[str, str, int]]:
    return [(one.fact, one.value, one.at_ms) for one in shown_earlier(rows, clients, Earlier())]


def log(name: str, head: str, last_ms: int | None) -> Row:
    return {"name": name, "fields": json.dumps({"head": head, "head_bytes": 9, "last_ms": last_ms})}


def test_a_file_of_this_night_was_read_earlier_if_it_is_the_same_log() -> None:
    dump: Row = {"name": "d.txt", "fields": json.dumps({"head": "", "head_bytes": 0})}
    mine: Row = dump | {"name": "mine.txt"}
    logs = [log("a.log", "A", 30), log("new.log", "N", 30), log("empty.log", "E", 30)]
    before = [log("a.1.log", "A", 20), log("empty.log", "E", None), dump]
    own = ["mine.txt", "a.log", "new.log", "empty.log"]
    until = earlier_until(own, [dump, mine, *logs], before)
    assert until.keys() == {"d.txt", "a.log"}
    assert until["a.log"] == 20 < NIGHT_MS < until["d.txt"]
    assert earlier_until(own, [dump, mine, *logs], []).keys() == {"d.txt"}
    (found,) = shown_earlier([allocated(20, "AVG") | {"source": "a.log:7"}], ["c1"], until)
    assert (found.value, found.source) == ("AVG", "a.log")
    assert shown_earlier([allocated(21, "AVG") | {"source": "a.log:8"}], ["c1"], until) == []


def test_the_last_statement_counts_in_any_order() -> None:
    older, newer = allocated(BEFORE_MS, "AVG"), allocated(BEFORE_MS + 5, "AVG_BY_CIRCLE")
    expected = [("strategy", "AVG_BY_CIRCLE", BEFORE_MS + 5)]
    assert facts(older, newer) == facts(newer, older) == expected


def test_what_this_night_showed_again_is_not_named() -> None:
    assert facts(allocated(BEFORE_MS, "AVG"), allocated(NIGHT_MS, "AVG")) == []
    assert facts(status(BEFORE_MS), allocated(NIGHT_MS, "AVG")) == [("version", "5.3.3", BEFORE_MS)]


def test_strategy_version_and_subscriptions_of_the_clients_asked_for() -> None:
    topics = [
        row("client_subscription", BEFORE_MS, f"f:{n}", topic=topic, client_file="c1")
        for n, topic in enumerate(("stock", "%RETRY%g", "orders"))
    ]
    other = allocated(BEFORE_MS, "CONFIG", "c2")
    assert facts(status(BEFORE_MS), *topics, other) == [
        ("strategy", "AVG", BEFORE_MS),
        ("subscriptions", "orders, stock", BEFORE_MS),
        ("version", "5.3.3", BEFORE_MS),
    ]


@pytest.mark.parametrize("place", ["broker-a", "proxy/p1"])
def test_a_proxy_states_its_own_version(place: str) -> None:
    listed = row("member", BEFORE_MS, "f:2", place, client_id="c1", version="V5_5_0")
    assert bool(facts(listed)) == (place == "broker-a")


def test_other_statements_and_missing_values_state_nothing() -> None:
    rows = [
        row("notified", BEFORE_MS, "f:1", client_id="c1", strategy="AVG"),
        row("client", BEFORE_MS, "f", client_file="c1", strategy=None, version=None),
        row("member", BEFORE_MS, "f:3", client_id=None, version="V5_3_3"),
        row("member", None, "f:4", client_id="c1", version="V5_3_3"),
        row("member", None, "f:5", client_id="c1", version="V5_3_3"),
    ]
    assert facts(*rows) == []


def test_one_sentence_for_each_file_and_a_count_of_further_clients() -> None:
    found = shown_earlier([status(BEFORE_MS)], ["c1"], Earlier())
    assert earlier_texts(found, NIGHT_MS) == [
        "strategy AVG, version 5.3.3 of c1: shown by the night of 2026-11-21 03:46:15Z "
        f"(mqadmin/{BEFORE_MS}-consumerStatus-g/c1.txt), and by no file since this one began "
        "(2026-11-21 03:47:15Z)"
    ]
    many = [ShownEarlier("strategy", f"c{n}", "AVG", BEFORE_MS, "f") for n in range(5)]
    assert earlier_texts(many, NIGHT_MS)[3:] == [
        "earlier nights alone show so of 2 more clients",
    ]
    assert earlier_texts([], NIGHT_MS) == []
