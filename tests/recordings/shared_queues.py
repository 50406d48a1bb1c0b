"""What brokers answered and clients got in a recording, compared with the ledger's `pop_reach`.

An answer is that of QueryAssignment: what the broker that was asked lets one client read of a
topic. It is compared with `pop_reach` where the topic is shared, else with `ownership`.
"""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_core.model.events import REQUEST_MODE
from rebalance_core.model.group_settings import CLIENT_REBALANCE
from tests.recordings.tables import DATA, Row, Tables
from tests.recordings.truth import RETRY, covers

WHOLE_BROKER = -1
ROUTE_MS = 36_000
"""Brokers poll routes every 30 s."""
REST_MS = {"TOPIC_CONFIG": ROUTE_MS, "BROKER_UP": ROUTE_MS, "BROKER_DOWN": ROUTE_MS}
NOTICED_MS = 4_000
"""Everything else reaches a broker with a heartbeat or a command."""
OWN_PASS_MS = 20_000
"""Clients find a change of mode at their own pass, and files date it by what they found."""

Reach = frozenset[tuple[str, int]]
"""(broker, queue id) of one topic."""
NOTHING: Reach = frozenset()


@dataclass(frozen=True)
class Answer:
    """What one client was answered, so many times in a row; None: keep what you have."""

    group: str
    topic: str
    client_id: str
    strategy: str
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
        about = line["group"], line["topic"], line["client_id"], line["strategy"]
        first = line["t" if line["kind"] == "assignment" else "from_t"]
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

    def possible(self, at_ms: int, early_ms: int, late_ms: int = 0) -> list[Row]:
        """Epochs that a broker may answer by at a moment: more than one during a change."""
        found = []
        for epoch, following in zip(self.epochs, [*self.epochs[1:], None], strict=True):
            until = at_ms if following is None else following["from_ms"] + _rest_ms(following)
            early = OWN_PASS_MS if REQUEST_MODE in epoch["causes"] else early_ms
            if epoch["from_ms"] - early <= at_ms <= until + late_ms:
                found.append(epoch)
        return found

    def asks(self, answer: Answer) -> bool:
        """A member of this group would ask so: with its strategy, and not dividing itself."""
        own = [r for r in self._tables["memberships"] if r["client_id"] == answer.client_id]
        return not self.ordered and any(
            row["rebalance_mode"] != CLIENT_REBALANCE and row["strategy"] == answer.strategy
            for row in own
        )

    def outcomes(self, answer: Answer, early_ms: int) -> set[Reach]:
        """What the client may be answered; nothing where the broker may not know it yet."""
        found = set()
        for epoch in self.possible(answer.at_ms, early_ms):
            if answer.client_id in self.members(epoch):
                found.add(self.reach(epoch, answer.topic, answer.client_id))
            else:
                found.add(NOTHING)
        if answer.at_ms <= self.epochs[0]["from_ms"] + NOTICED_MS:
            found.add(NOTHING)
        return found

    def rests(self, at_ms: int) -> bool:
        """No change of routes has been under way for a while; retry topics are created late."""
        begun = [epoch["from_ms"] for epoch in self.epochs if epoch["from_ms"] - ROUTE_MS <= at_ms]
        return at_ms > max(begun, default=at_ms) + ROUTE_MS + OWN_PASS_MS

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

    Left out: answers to ids that are no members then, questions that no member asks (another
    strategy, a member that divides itself), and retry topics shortly after a change.
    """
    result, states = Agreement(), _States(tables, ordered)
    for answer in found:
        group = states[answer.group]
        outcomes = group.outcomes(answer, early_ms)
        late = answer.topic.startswith(RETRY) and not group.rests(answer.at_ms)
        if late or outcomes <= {NOTHING} or not group.asks(answer):
            continue
        result.facts += answer.times
        result.exact += answer.times if len(outcomes) == 1 else 0
        if (answer.result or NOTHING) not in outcomes:
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
        wanted = {(broker, line["queue_id"]), (broker, WHOLE_BROKER)}
        for at_ms in line["times"]:
            reached = {
                one
                for epoch in group.possible(at_ms, early_ms, held_ms)
                for one in group.reach(epoch, line["topic"], line["client_id"])
            }
            result.facts += 1
            if not reached & wanted:
                about = line["group"], line["client_id"], at_ms, broker, line["queue_id"]
                result.mismatches.append(f"{about} not in {sorted(reached)}")
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


def shared_at(tables: Tables, group: str, at_ms: int) -> set[str]:
    """Topics that the group shares at a moment."""
    rows = (row for row in tables["pop_reach"] if row["consumer_group"] == group)
    return {row["topic"] for row in rows if covers(row, at_ms)}
