"""Go members beside Java ones, from the operators' files alone (recording `go-java`).

Of a Java member the truth is its own table of queues; of a Go one what each of its passes that
changed something came to, by its log.
"""

import re
from collections import defaultdict
from datetime import datetime
from functools import cache
from itertools import pairwise

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.tables import DATA, Row, Tables, ledger_of, rows
from tests.recordings.truth import BEFORE_MS, Queue, covers, read_truth

NAME = "go-java"
GO_1, GO_2 = "192.0.2.2@13627", "192.0.2.2@14089"
JAVA = {"j1": "192.0.2.10@13923", "j2": "192.0.2.1@14158"}
REST_MS = {"broker_killed": 50_000, "broker_restarted": 50_000}
JOIN_REST_MS = 5_000
CELLS = {"g-mix": 7 * 8, "g-hash": 6 * 8, "g-ord": 6 * 8}
"""Queues at the quiet moments: before each change, and at the end."""
CHANGES = ("client_started", "client_killed", "client_shutdown", *REST_MS)
_BALANCE = re.compile(
    r'time="(?P<at>[^"]+)".*MessageQueue do balance done.* clientID=(?P<client>\S+) '
    r'consumerGroup=(?P<group>\S+) .*rebalanceResultSet="\[(?P<queues>.*)\]" '
    r'.*topic="?(?P<topic>\S+?)"?$'
)
_QUEUE = re.compile(r"topic=(\S+), brokerName=(\S+), queueId=(\d+)")


@cache
def ledger() -> Tables:
    return ledger_of(ingest_collection(DATA / NAME / "collection").tables)


def happened() -> list[Row]:
    events = [
        row for row in rows(DATA / NAME / "events.jsonl") if row["event"] in (*CHANGES, "end")
    ]
    return sorted(events, key=lambda row: row["t"])


def quiet_moments() -> list[int]:
    """Just before each change, and the end, where the one before has surely reached everybody."""
    moments = []
    for event, following in pairwise(happened()):
        begins = int(following.get("spawn_t") or following["t"])
        rest_ms = event["t"] + REST_MS.get(event["event"], JOIN_REST_MS)
        if begins - BEFORE_MS >= rest_ms:
            moments.append(begins - BEFORE_MS)
    return moments


@cache
def results_of_go() -> dict[tuple[str, str], list[tuple[int, str, set[Queue]]]]:
    """By client id and group: when a pass changed the queues of a topic, and to which."""
    found: dict[tuple[str, str], list[tuple[int, str, set[Queue]]]] = defaultdict(list)
    for path in sorted((DATA / NAME / "truth").glob("*.log")):
        for line in path.read_text("utf-8").splitlines():
            if (one := _BALANCE.match(line)) is not None:
                at_ms = int(datetime.fromisoformat(one["at"]).timestamp()) * 1000
                queues = {(t, b, int(q)) for t, b, q in _QUEUE.findall(one["queues"])}
                found[one["client"], one["group"]].append((at_ms, one["topic"], queues))
    return found


def really_held(group: str, at_ms: int) -> dict[str, set[Queue]]:
    """The queues of the topic of a group by client id, those of nobody left out."""
    held: dict[str, set[Queue]] = {}
    truth = read_truth(NAME)
    for file, client_id in JAVA.items():
        for topic, queues in truth.owned(file, group, at_ms).items():
            if not topic.startswith("%"):
                held[client_id] = queues
    gone = {GO_2: "client_killed", GO_1: "client_shutdown"}
    for (client_id, of_group), passes in results_of_go().items():
        (end_ms,) = (row["t"] for row in happened() if row["event"] == gone[client_id])
        for then_ms, topic, queues in passes:
            if of_group == group and not topic.startswith("%") and then_ms <= at_ms < end_ms:
                held[client_id] = queues
    return {client_id: queues for client_id, queues in held.items() if queues}


def held_by_ledger(group: str, at_ms: int) -> dict[str, set[Queue]]:
    held: dict[str, set[Queue]] = defaultdict(set)
    for row in of_group("ownership", group):
        if row["client_id"] is not None and covers(row, at_ms):
            held[_process(row)].add(_queue(row))
    return held


def of_group(table: str, group: str) -> list[Row]:
    return [
        row
        for row in ledger()[table]
        if row["consumer_group"] == group and not row["topic"].startswith("%")
    ]


def _process(row: Row) -> str:
    return str(row["client_id"]).partition("#")[0]


def _queue(row: Row) -> Queue:
    return row["topic"], row["broker_name"], row["queue_id"]


def waits(group: str, at_ms: int) -> dict[str, set[Queue]]:
    """The queues that a new owner need not have yet."""
    found: dict[str, set[Queue]] = defaultdict(set)
    for row in of_group("diffs", group):
        if row["action"] == "ADD" and row["change_ms"] <= at_ms < row["latest_ms"]:
            found[_process(row)].add(_queue(row))
    return found


@pytest.mark.parametrize("group", ["g-mix", "g-hash", "g-ord"])
def test_every_member_holds_what_the_ledger_says_at_quiet_moments(group: str) -> None:
    cells = 0
    for at_ms in quiet_moments():
        real, predicted, late = (f(group, at_ms) for f in (really_held, held_by_ledger, waits))
        for client_id in real.keys() | predicted.keys():
            missing = predicted.get(client_id, set()) - real.get(client_id, set())
            assert real.get(client_id, set()) <= predicted.get(client_id, set()), (at_ms, client_id)
            assert missing <= (late[client_id] if group == "g-ord" else set()), (at_ms, client_id)
        cells += len({queue for queues in predicted.values() for queue in queues})
    print(group, cells)
    assert cells == CELLS[group]
