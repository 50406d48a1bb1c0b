"""What brokers answered and clients got in a recording, compared with the ledger's `pop_reach`.

An answer is that of QueryAssignment: what the broker that was asked lets one client read of a
topic. It is compared with `pop_reach` where the topic is shared, else with `ownership`.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_core.model.group_settings import CLIENT_REBALANCE
from tests.recordings.tables import DATA, Row, Tables
from tests.recordings.truth import RETRY, covers

WHOLE_BROKER = -1
REST_MS = {"TOPIC_CONFIG": 36_000, "BROKER_UP": 36_000, "BROKER_DOWN": 36_000}
"""Brokers poll routes every 30 s."""
NOTICED_MS = 4_000
"""Everything else reaches a broker with a heartbeat or a command."""

Reach = frozenset[tuple[str, int]]
"""(broker, queue id) of one topic."""


@dataclass(frozen=True)
class Answer:
    """What one client was answered, so many times in a row; None: keep what you have."""

    group: str
    topic: str
    client_id: str
    at_ms: int
    times: int
    result: Reach | None


@dataclass
class Agreement:
    """Facts compared; those outside every window, which only one state can explain; the rest."""

    facts: int = 0
    exact: int = 0
    mismatches: list[str] = field(default_factory=list)


def answers(name: str) -> Iterator[Answer]:
    """Every answer that the recorder's clients and its prober got; a run of equal ones at its ends.

    Not those about retry topics of POP, which no table has.
    """
    with gzip.open(DATA / name / "truth" / "answers.jsonl.gz", "rt") as lines:
        yield from _answers(map(json.loads, lines))


def _answers(lines: Iterable[Row]) -> Iterator[Answer]:
    for line in lines:
        own_retry = line["topic"] == RETRY + line["group"]
        if "result" not in line or (line["topic"].startswith(RETRY) and not own_retry):
            continue
        result = line["result"]
        reach = None if result is None else frozenset((b, q) for b, q in result)
        about = line["group"], line["topic"], line["client_id"]
        first = line.get("t" if line["kind"] == "assignment" else "from_t")
        times = line.get("times", 1)
        yield Answer(*about, first, 1, reach)
        if times > 1:
            yield Answer(*about, line["to_t"], times - 1, reach)


def deliveries(name: str) -> list[Row]:
    """First deliveries: client, group, topic, broker and queue with the times of each."""
    with gzip.open(DATA / name / "truth" / "deliveries.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


class States:
    """What a ledger says of one group: who may read what in each of its epochs."""

    def __init__(self, tables: Tables, group: str, ordered: bool) -> None:
        self.ordered = ordered
        self._tables = {
            name: [row for row in rows if row.get("consumer_group") == group]
            for name, rows in tables.items()
        }

    @cached_property
    def epochs(self) -> list[Row]:
        """In order."""
        return sorted(self._tables["epochs"], key=lambda row: row["epoch"])

    def possible(self, at_ms: int, early_ms: int) -> list[Row]:
        """Epochs that a broker may answer by at a moment: more than one during a change."""
        found, until = [], None
        for epoch, following in zip(self.epochs, [*self.epochs[1:], None], strict=True):
            until = None if following is None else following["from_ms"] + _rest_ms(following)
            if epoch["from_ms"] - early_ms <= at_ms and (until is None or at_ms <= until):
                found.append(epoch)
        return found

    def divides_itself(self, client_id: str) -> bool:
        """The client asks no broker: its own clientRebalance, or an orderly listener."""
        own = [r for r in self._tables["memberships"] if r["client_id"] == client_id]
        return self.ordered or any(row["rebalance_mode"] == CLIENT_REBALANCE for row in own)

    def members(self, epoch: Row) -> set[str]:
        """Client ids of the members."""
        return {r["client_id"] for r in self._tables["memberships"] if _in(r, epoch)}

    def reach(self, epoch: Row, topic: str, client_id: str) -> Reach:
        """What the client may read of the topic: its shared queues, or those it owns."""
        rows = [*self._tables["pop_reach"], *self._tables["ownership"]]
        return frozenset(
            (row["broker_name"], row["queue_id"])
            for row in rows
            if (row["topic"], row["client_id"]) == (topic, client_id) and _in(row, epoch)
        )


def check_answers(
    tables: Tables, found: Iterable[Answer], early_ms: int, ordered: frozenset[str] = frozenset()
) -> Agreement:
    """Each answer is what the ledger says of its moment; during a change, of one of its states.

    Left out: answers to ids that are no members then, and to the prober in the name of members that
    never ask.
    """
    result, states = Agreement(), _States(tables, ordered)
    for answer in found:
        group = states[answer.group]
        possible = group.possible(answer.at_ms, early_ms)
        outcomes = {
            group.reach(epoch, answer.topic, answer.client_id)
            for epoch in possible
            if answer.client_id in group.members(epoch)
        }
        if not outcomes or group.divides_itself(answer.client_id):
            continue
        result.facts += answer.times
        result.exact += answer.times if len(outcomes) == 1 else 0
        if (answer.result or frozenset()) not in outcomes:
            result.mismatches.append(f"{answer} not in {[sorted(one) for one in outcomes]}")
    return result


def check_deliveries(tables: Tables, found: list[Row], early_ms: int, held_ms: int) -> Agreement:
    """Each first delivery lies in what its client might read then, or shortly before.

    Args:
        tables: the ledger.
        found: as `deliveries` gives them.
        early_ms: how late a change may be dated.
        held_ms: how long a message may be under way after its client lost the queue.
    """
    result, states = Agreement(), _States(tables, frozenset())
    for line in found:
        group, broker = states[line["group"]], line["broker"]
        for at_ms in line["times"]:
            possible = group.possible(at_ms, early_ms)
            for epoch in group.epochs:
                if epoch["from_ms"] <= at_ms and at_ms - held_ms <= (epoch["to_ms"] or at_ms):
                    possible.append(epoch)
            reached = {
                one
                for epoch in possible
                for one in group.reach(epoch, line["topic"], line["client_id"])
            }
            result.facts += 1
            if not reached & {(broker, line["queue_id"]), (broker, WHOLE_BROKER)}:
                result.mismatches.append(f"{line['group']} {line['client_id']} {at_ms} {broker}"
                                         f" {line['queue_id']} not in {sorted(reached)}")  # fmt: skip
    return result


class _States(dict[str, States]):
    def __init__(self, tables: Tables, ordered: frozenset[str]) -> None:
        super().__init__()
        self._tables, self._ordered = tables, ordered

    def __missing__(self, group: str) -> States:
        self[group] = States(self._tables, group, group in self._ordered)
        return self[group]


def _rest_ms(epoch: Row) -> int:
    return max(REST_MS.get(cause, NOTICED_MS) for cause in epoch["causes"])


def _in(row: Row, epoch: Row) -> bool:
    return row["from_epoch"] <= epoch["epoch"] and (
        row["to_epoch"] is None or epoch["epoch"] < row["to_epoch"]
    )


def tables_of(name: str, groups: dict[str, Row]) -> Tables:
    """Input tables from what the recorder did, and when its clients said that they had started.

    Args:
        name: of the recording.
        groups: columns of each group's row of consumer_groups.
    """
    events = [json.loads(line) for line in (DATA / name / "events.jsonl").read_text().splitlines()]
    found = [*_of_recorder(events), *_of_clients(name, events, groups)]
    found.sort(key=lambda row: row["event_ms"])
    common = {"cluster": "DefaultCluster"}
    return {
        "cluster_events": [common | {"sequence": i} | row for i, row in enumerate(found)],
        "consumer_groups": [common | {"consumer_group": g} | row for g, row in groups.items()],
        "queue_offsets": [],
        "committed_offsets": [],
    }


def _of_recorder(events: list[Row]) -> Iterator[Row]:
    for event in events:
        match event["event"]:
            case "broker_started":
                yield {"event_ms": event["t"], "event_type": "BROKER_UP",
                       "broker_name": event["broker"]}  # fmt: skip
            case "topic_created" | "topic_updated":
                for broker in event.get("brokers") or [event["broker"]]:
                    yield {"event_ms": event.get("done_t", event["t"]),
                           "event_type": "TOPIC_CONFIG", "topic": event["topic"],
                           "broker_name": broker, "read_queue_nums": event["read"],
                           "write_queue_nums": event["write"], "perm": event["perm"]}  # fmt: skip
            case "request_mode_set":
                share = event["pop_share_queue_num"]
                pop = event["mode"] == "POP"
                yield {"event_ms": event["done_t"], "event_type": "REQUEST_MODE",
                       "topic": event["topic"], "consumer_group": event["group"],
                       "detail": f"POP(share_queue_num={share})" if pop else "PULL"}  # fmt: skip


def _of_clients(name: str, events: list[Row], groups: dict[str, Row]) -> Iterator[Row]:
    killed = defaultdict(list)
    for event in events:
        if event["event"] == "client_killed":
            killed[event["client"]].append(event["t"])
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        for row in _of_client(map(json.loads, path.read_text().splitlines()), killed[path.stem]):
            if row["consumer_group"] in groups:
                yield row


def _of_client(lines: Iterator[Row], killed: list[int]) -> Iterator[Row]:
    alive: dict[str, str] = {}
    dead = iter([*killed, 1 << 60])
    death = next(dead)
    for line in sorted(lines, key=lambda line: line["t"]):
        if line["t"] > death:
            yield from (_gone("CONSUMER_LOST", death, g, i) for g, i in alive.items())
            alive, death = {}, next(dead)
        if line["kind"] == "started":
            alive[line["group"]] = line["client_id"]
            yield _gone("CONSUMER_JOIN", line["t"], line["group"], line["client_id"])
        if line["kind"] == "shutdown_end" and line["group"] in alive:
            yield _gone("CONSUMER_LEAVE", line["t"], line["group"], alive.pop(line["group"]))
    if death < 1 << 60:
        yield from (_gone("CONSUMER_LOST", death, g, i) for g, i in alive.items())


def _gone(event_type: str, at_ms: int, group: str, client_id: str) -> Row:
    return {"event_ms": at_ms, "event_type": event_type, "consumer_group": group,
            "client_id": client_id}  # fmt: skip


def shared_at(tables: Tables, group: str, at_ms: int) -> set[str]:
    """Topics that the group shares at a moment."""
    rows = (row for row in tables["pop_reach"] if row["consumer_group"] == group)
    return {row["topic"] for row in rows if covers(row, at_ms)}
