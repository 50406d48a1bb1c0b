"""What the clients of a recording really did, compared with a ledger of it."""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.recordings.tables import DATA, Row, Tables, rows

RETRY = "%RETRY%"
BEFORE_MS = 500  # a join is noted when start() returned, up to some 200 ms after it took effect
OVERLOADED_BEFORE_MS = {"join-leave-5.5": 1_500}
"""Of a recording whose host was overloaded: the brokers had members up to 1.2 s before."""
TOLERANCE_MS = 2_000
JOIN_LEAVE_REST_MS, EXPIRY_REST_MS, ROUTE_REST_MS = 4_000, 30_000, 55_000
NOTIFIED = {"CONSUMER_JOIN", "CONSUMER_LEAVE", "CONSUMER_LOST"}

Queue = tuple[str, str, int]


@dataclass
class Comparison:
    """Facts compared and what did not agree."""

    facts: int = 0
    mismatches: list[str] = field(default_factory=list)

    def expect(self, holds: bool, *what: Any) -> None:
        """Count one fact."""
        self.facts += 1
        if not holds:
            self.mismatches.append(" ".join(map(str, what)))


@dataclass
class Truth:
    """Truth lines of one recording by (client file, group)."""

    name: str
    lines: dict[tuple[str, str], list[Row]] = field(default_factory=lambda: defaultdict(list))
    client_of: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    end_ms: int = 0

    def owned(
        self, file: str, group: str, at_ms: int, kind: str = "owned"
    ) -> dict[str, set[Queue]]:
        """The working set by topic as last written at a moment by the run alive then.

        That of pulled queues; of kind ``popping`` that of popped ones.
        """
        owned: dict[str, set[Queue]] = {}
        for line in self.lines[file, group]:
            if line["t"] > at_ms:
                break
            if line["kind"] == "starting":
                owned = {}
            if line["kind"] == kind:
                owned[line["topic"]] = {(line["topic"], b, q) for b, q in line["queues"]}
        return owned

    def times(self, client_id: str, group: str, kind: str) -> dict[Queue, list[tuple[int, Row]]]:
        """When the client started or stopped each queue."""
        found: dict[Queue, list[tuple[int, Row]]] = defaultdict(list)
        for file, of_group in self.client_of[client_id]:
            alive = None
            for line in self.lines[file, of_group]:
                if line["kind"] == "starting":
                    alive = None
                alive = line.get("client_id", alive)
                if of_group == group and line["kind"] == kind:
                    found[line["topic"], line["broker"], line["queue_id"]].append((line["t"], line))
        for times in found.values():
            times.sort(key=lambda at: at[0])
        return found


def read_truth(name: str) -> Truth:
    """All truth files of a recording."""
    truth = Truth(name)
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        for line in rows(path):
            truth.lines[path.stem, line["group"]].append(line)
            if line["kind"] == "started":
                truth.client_of[line["client_id"]].add((path.stem, line["group"]))
    for lines in truth.lines.values():
        lines.sort(key=lambda line: line["t"])
    truth.end_ms = json.loads((DATA / name / "cluster.json").read_text())["end_ms"]
    return truth


def rest_points(truth: Truth, events: list[Row], ordered: bool) -> Iterator[tuple[int, bool]]:
    """(moment, retry topics at rest too): when rest is reached, and just before the next event.

    An orderly group may still wait for a lock when rest is reached, so only the second counts.
    """
    before_ms = OVERLOADED_BEFORE_MS.get(truth.name, BEFORE_MS)
    rest = retry_rest = 0
    in_time = sorted(events, key=lambda event: event["event_ms"])
    for event, following in zip(in_time, [*in_time[1:], None], strict=True):
        rest = max(rest, event["event_ms"] + _rest_ms(event))
        retry_rest = max(retry_rest, event["event_ms"] + ROUTE_REST_MS)
        point = truth.end_ms if following is None else following["event_ms"] - before_ms
        for moment in (point,) if ordered else (rest, point):
            if rest <= moment <= point:
                yield moment, moment >= retry_rest


def _rest_ms(event: Row) -> int:
    if event["event_type"] not in NOTIFIED:
        return ROUTE_REST_MS
    return EXPIRY_REST_MS if event.get("detail") == "EXPIRED" else JOIN_LEAVE_REST_MS


def check_owned(truth: Truth, ledger: Tables) -> Comparison:
    """(a) The owned set of every live client at every rest point; one fact a topic."""
    result = Comparison()
    tables = DATA / truth.name / "tables"
    events = rows(tables / "cluster_events.jsonl")
    ordered = {r["consumer_group"] for r in rows(tables / "consumer_groups.jsonl") if r["ordered"]}
    for group in sorted({row["consumer_group"] for row in ledger["memberships"]}):
        own = [e for e in events if e.get("consumer_group", group) == group]
        for at_ms, retry_too in rest_points(truth, own, group in ordered):
            held = _held(ledger, group, at_ms)
            for member in ledger["memberships"]:
                if member["consumer_group"] != group or not covers(member, at_ms):
                    continue
                file = member["channel_id"].split("/")[0]
                owned = truth.owned(file, group, at_ms)
                topics = {*member["subscriptions"], *owned}
                for topic in sorted(topics | {RETRY + group} if retry_too else topics):
                    if topic.startswith(RETRY) and not retry_too:
                        continue
                    expected = {q for q in held[member["client_id"]] if q[0] == topic}
                    real = owned.get(topic, set())
                    result.expect(
                        real == expected,
                        truth.name,
                        group,
                        topic,
                        member["client_id"],
                        at_ms,
                        "real",
                        sorted(real - expected),
                        "ledger",
                        sorted(expected - real),
                    )
    return result


def _held(ledger: Tables, group: str, at_ms: int) -> dict[str, set[Queue]]:
    held: dict[str, set[Queue]] = defaultdict(set)
    for row in ledger["ownership"]:
        if row["consumer_group"] == group and row["client_id"] and covers(row, at_ms):
            held[row["client_id"]].add(_queue(row))
    return held


class Move(NamedTuple):
    """What a member gives up or takes on balance from one settled epoch to the next."""

    group: str
    action: str
    client_id: str
    queue: Queue
    earliest_ms: int
    latest_ms: int


def net_moves(ledger: Tables) -> Iterator[Move]:
    """Net drops and adds between consecutive settled epochs of a ledger, with their windows.

    Left out are those of retry topics, the drops of who is gone and, where someone unsubscribed,
    all drops: no line of the truth has them. Nor is a queue that was held before the log begins
    taken within it.
    """
    unsubscribed = {
        (row["consumer_group"], row["epoch"])
        for row in ledger["epochs"]
        if "UNSUBSCRIBE" in row["causes"]
    }
    diffs: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in ledger["diffs"]:
        diffs[row["consumer_group"], row["epoch"]].append(row)
    for group in sorted({row["consumer_group"] for row in ledger["epochs"]}):
        span: list[Row] = []
        for epoch in (row for row in ledger["epochs"] if row["consumer_group"] == group):
            span.append(epoch)
            if epoch["transient"]:
                continue
            numbers = [one["epoch"] for one in span]
            rows = [row for number in numbers for row in diffs[group, number]]
            drops_seen = not any((group, number) in unsubscribed for number in numbers)
            gone = _gone(ledger, group, set(numbers))
            for move in _net(rows, span[0]["from_ms"]):
                if move.action == "ADD" or (drops_seen and move.client_id not in gone):
                    yield move
            span = []


def _net(rows: list[Row], from_ms: int) -> Iterator[Move]:
    net: dict[tuple[str, Queue], int] = defaultdict(int)
    latest: dict[tuple[str, Queue], int] = defaultdict(int)
    earliest: dict[tuple[str, Queue], int] = defaultdict(lambda: from_ms)
    initial = set()
    for row in rows:
        key = (row["client_id"], _queue(row))
        net[key] += 1 if row["action"] == "ADD" else -1
        latest[key] = max(latest[key], row["latest_ms"])
        earliest[key] = min(earliest[key], row["earliest_ms"])
        if row["kind"] == "INITIAL":
            initial.add(key)
    for (client_id, queue), change in net.items():
        held_before = change > 0 and (client_id, queue) in initial
        if change and not held_before and not queue[0].startswith(RETRY):
            action = "ADD" if change > 0 else "DROP"
            group = rows[0]["consumer_group"]
            window = earliest[client_id, queue], latest[client_id, queue]
            yield Move(group, action, client_id, queue, *window)


def check_moves(truth: Truth, ledger: Tables) -> Comparison:
    """(b) Net drops and adds between consecutive settled epochs, seen inside their windows."""
    result = Comparison()
    for move in net_moves(ledger):
        times = moments(truth, move)
        result.expect(within(move, times), truth.name, *move, "real", times)
    return result


def moments(truth: Truth, move: Move) -> list[int]:
    """When the client really started or stopped the queue."""
    kind = "start" if move.action == "ADD" else "stop"
    return [t for t, _ in truth.times(move.client_id, move.group, kind)[move.queue]]


def within(move: Move, times: Iterable[int]) -> bool:
    """Whether any of the moments lies in the window of the move."""
    low, high = move.earliest_ms - TOLERANCE_MS, move.latest_ms + TOLERANCE_MS
    return any(low <= t <= high for t in times)


def _gone(ledger: Tables, group: str, epochs: set[int]) -> set[str]:
    """Clients of which a process ends in one of these epochs."""
    return {
        row["client_id"]
        for row in ledger["memberships"]
        if row["consumer_group"] == group
        and row["to_epoch"] in epochs
        and not any(
            other["client_id"] == row["client_id"]
            and other["channel_id"] == row["channel_id"]
            and other["consumer_group"] == group
            and other["from_epoch"] == row["to_epoch"]
            for other in ledger["memberships"]
        )
    }


@dataclass
class Starts(Comparison):
    """(c) with how exact the estimates are."""

    exact: int = 0
    with_commit: int = 0
    exact_where_seen: int = 0
    owner_seen: int = 0
    """Rows with an earlier commit of which the tables show the last owner's own commits."""
    widths: list[int] = field(default_factory=list)


def check_starts(truth: Truth, ledger: Tables, commits: list[Row] | None = None) -> Starts:
    """(c) Every ADD's first real start inside its window lies in its bounds.

    Args:
        truth: of a recording.
        ledger: of the same.
        commits: committed_offsets that it was made of; None: those derived from the recording.
    """
    result = Starts()
    path = DATA / truth.name / "tables" / "committed_offsets.jsonl"
    if commits is None:
        commits = rows(path) if path.exists() else []
    seen_committing = {row["client_id"] for row in commits if row.get("client_id")}
    for row in ledger["pull_starts"]:
        queue = _queue(row)
        starts = truth.times(row["client_id"], row["consumer_group"], "start")[queue]
        low, high = row["earliest_ms"] - TOLERANCE_MS, row["latest_ms"] + TOLERANCE_MS
        index = bisect_right([t for t, _ in starts], low - 1)
        if index == len(starts) or starts[index][0] > high:
            continue
        offset = starts[index][1]["next_offset"]
        bottom, top = row["start_offset_low"], row["start_offset_high"]
        inside = bottom is not None and bottom <= offset and (top is None or offset <= top)
        result.expect(
            inside,
            truth.name,
            row["consumer_group"],
            queue,
            row["client_id"],
            "epoch",
            row["epoch"],
            row["rule"],
            "real",
            offset,
            "bounds",
            bottom,
            top,
            "stored",
            row["stored_offset"],
            "start",
            row["start_offset"],
            "after",
            starts[index][0] - row["earliest_ms"],
        )
        if top is not None and bottom is not None:
            result.widths.append(top - bottom)
        if row["stored_offset"] is not None:
            exact = row["start_offset"] == offset
            result.with_commit += 1
            result.exact += exact
            if _last_owners(ledger, row) & seen_committing:
                result.owner_seen += 1
                result.exact_where_seen += exact
    return result


def _last_owners(ledger: Tables, start: Row) -> set[str]:
    """Who held the queue last before this epoch."""
    held = [
        row
        for row in ledger["ownership"]
        if row["consumer_group"] == start["consumer_group"]
        and row["client_id"] is not None
        and _queue(row) == _queue(start)
        and row["from_epoch"] < start["epoch"]
    ]
    last = max((row["to_ms"] or start["change_ms"] for row in held), default=0)
    return {row["client_id"] for row in held if (row["to_ms"] or start["change_ms"]) == last}


def _queue(row: Row) -> Queue:
    return row["topic"], row["broker_name"], row["queue_id"]


def covers(row: Row, at_ms: int) -> bool:
    """True if the row holds at that moment."""
    return row["from_ms"] <= at_ms and (row["to_ms"] is None or at_ms < row["to_ms"])
