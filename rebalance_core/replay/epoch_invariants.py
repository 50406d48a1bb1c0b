"""Invariants among a group's ledger rows in an epoch; see `invariants.check_ledger`."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rebalance_core.contracts import Table
from rebalance_core.contracts.ledger import CONSUMER_LOAD, GROUP_METRICS
from rebalance_core.model.client_profile import KEPT_LOCK_MS
from rebalance_core.model.clients import profile_of_row
from rebalance_core.model.group_settings import CLUSTERING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.verdicts import EMPTY, FAILED, FROZEN, OK, SETTLED, UNKNOWN
from rebalance_core.protocol.start_offset import QUERY_FAILED
from rebalance_core.replay.changes import ADD, DROP, FORCED, INITIAL, NEW, VOLUNTARY

Row: TypeAlias = Mapping[str, Any]
Holders: TypeAlias = dict[MessageQueue, dict[str | None, int]]
Move: TypeAlias = tuple[MessageQueue, str, str]
"""(queue, action, client id)"""

BALANCED_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # sizes differ by at most one for every input
OPPOSITE = {ADD: DROP, DROP: ADD}
MOVE_KINDS = {ADD: (INITIAL, NEW, FORCED, VOLUNTARY), DROP: (FORCED, VOLUNTARY)}


def share_known(member: Row) -> bool:
    """Return whether the queues of the process in a row of memberships are known."""
    rule_known = profile_of_row(member).share_known(member["strategy"])
    return member["subscriptions"] is not None and (
        rule_known or member["message_model"] != CLUSTERING
    )


@dataclass(frozen=True, slots=True)
class Instant:
    """All rows of a group about an epoch, and the holders before it and since."""

    epoch: Row
    members: list[Row]
    loads: list[Row]
    diffs: list[Row]
    pull_starts: list[Row]
    metrics: list[Row]
    reach: list[Row]
    pop_metrics: list[Row]
    states: list[Row]
    before: Holders
    holders: Holders
    were_known: bool = True
    """Whether the subscriptions of all members in all earlier epochs were known."""

    @property
    def all_known(self) -> bool:
        """Return True if the queues of each member are known."""
        return all(map(share_known, self.members)) and not self.doubted

    @property
    def doubted(self) -> set[str]:
        """Clients whose queues may depend on rules known only from source code."""
        return {row["client_id"] for row in self.members if profile_of_row(row).may_be_doubtful}

    @property
    def processes(self) -> Counter[str]:
        """Live processes of each client id."""
        return Counter(row["client_id"] for row in self.members)


def epoch_errors(instant: Instant) -> Iterator[str]:
    """Yield one sentence for each contradiction in this epoch."""
    for check in (
        _owner_errors,
        _subscriber_errors,
        _count_errors,
        _tiling_errors,
        _diff_errors,
        _kind_errors,
        _start_errors,
        _load_errors,
        _metric_errors,
        _minimum_errors,
        _state_errors,
        _readable_errors,
        _channel_errors,
    ):
        yield from check(instant)


def queue_of(row: Row) -> MessageQueue:
    """Return the queue of a row."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _owner_errors(instant: Instant) -> Iterator[str]:
    """Check that a queue has an owner or no owner, and that its holders are live processes."""
    processes = instant.processes
    for queue, holders in instant.holders.items():
        if None in holders and len(holders) > 1:
            yield f"{queue} has both an owner and no owner"
        for client_id, count in holders.items():
            if client_id is None:
                if count != 0:
                    yield f"{queue} has no owner but {count} holders"
            elif not 1 <= count <= processes[client_id]:
                living = processes[client_id]
                yield (
                    f"{queue} has {count} holders {client_id!r}; only {living} such processes "
                    "are live"
                )


def _subscriber_errors(instant: Instant) -> Iterator[str]:
    """Check that every holder subscribes to the topic, or is suspended and keeps earlier queues."""
    topics: dict[str | None, set[str]] = defaultdict(set)
    suspended = {row["client_id"] for row in instant.members if row["suspended"]}
    for row in instant.members:
        topics[row["client_id"]].update(row["subscriptions"] or ())
    for queue, holders in instant.holders.items():
        if not is_retry_topic(queue.topic):
            for client_id in holders.keys() - suspended - {None}:
                if queue.topic not in topics[client_id]:
                    yield f"{client_id!r} holds {queue} but does not subscribe to the topic"


def _count_errors(instant: Instant) -> Iterator[str]:
    """Check the counts of the epochs row against the other tables."""
    epoch, holders = instant.epoch, instant.holders.values()
    actions = Counter(row["action"] for row in instant.diffs)
    expected = {
        "members": len(instant.members),
        "distinct_members": len(instant.processes),
        "added": actions[ADD],
        "dropped": actions[DROP],
        "orphaned": sum(None in clients for clients in holders),
        "shared": sum(sum(clients.values()) > 1 for clients in holders),
    }
    for column, value in expected.items():
        if epoch[column] != value:
            yield f"{column} is {epoch[column]}; the rows give {value}"
    if epoch["status"] not in ((SETTLED, FROZEN) if instant.members else (EMPTY,)):
        yield f"status {epoch['status']} with {len(instant.members)} members"
    if not epoch["causes"] or len(set(epoch["causes"])) < len(epoch["causes"]):
        yield f"causes {epoch['causes']} are empty or repeated"
    if epoch["transient"] and epoch["to_ms"] is None:
        yield "an open epoch is transient"


def _tiling_errors(instant: Instant) -> Iterator[str]:
    """Check that exactly the readable queues have rows, if members' subscriptions are known.

    Frozen topics, suspended members and CONFIG lists may add rows of other queues.
    """
    rows, readable = len(instant.holders), instant.epoch["queues"]
    if rows < readable and instant.all_known:
        yield f"{readable} queues are readable, but ownership has only {rows} rows"
    only_readable = instant.epoch["status"] != FROZEN and not any(
        row["suspended"] or row["strategy"].startswith("CONFIG") for row in instant.members
    )
    if only_readable and rows > readable:
        yield f"{readable} queues are readable, but ownership has {rows} rows"


def _moves(instant: Instant) -> set[Move]:
    """Return the moves: any rise in the number of holders is an ADD, and any fall is a DROP."""
    moves: set[Move] = set()
    for queue in instant.before.keys() | instant.holders.keys():
        was, now = instant.before.get(queue, {}), instant.holders.get(queue, {})
        for client_id in was.keys() | now.keys():
            rise = now.get(client_id, 0) - was.get(client_id, 0)
            if client_id is not None and rise:
                moves.add((queue, ADD if rise > 0 else DROP, client_id))
    return moves


def _diff_errors(instant: Instant) -> Iterator[str]:
    """Check that diffs are exactly the difference in ownership between two epochs."""
    expected = _moves(instant)
    actual = {(queue_of(row), row["action"], row["client_id"]) for row in instant.diffs}
    missing = expected - actual
    for queue, action, client_id in missing:
        if client_id in instant.doubted:
            continue
        yield f"ownership changes, but diffs have no {action} of {queue} by {client_id!r}"
    for queue, action, client_id in actual - expected:
        yield (
            f"diffs have {action} of {queue} by {client_id!r}, but ownership does not change "
            "accordingly"
        )
    clients: dict[tuple[MessageQueue, str], list[str]] = defaultdict(list)
    for queue, action, client_id in expected - missing:
        clients[queue, action].append(client_id)
    for row in instant.diffs:
        opposite = clients[queue_of(row), OPPOSITE.get(row["action"], "")]
        only = opposite[0] if len(opposite) == 1 else None
        if row["other_client_id"] != only:
            yield f"other_client_id should be {only!r} in {dict(row)}"


def _kind_errors(instant: Instant) -> Iterator[str]:
    """Check the moments, cause and kind of each diff."""
    epoch, processes = instant.epoch, instant.processes
    added = [row["kind"] for row in instant.diffs if row["action"] == ADD]
    if INITIAL in added and set(added) != {INITIAL}:
        yield "some ADDs are INITIAL and others are not"
    for row in instant.diffs:
        was = {client_id for client_id in instant.before.get(queue_of(row), {}) if client_id}
        departed = row["action"] == DROP and row["client_id"] not in processes
        waits = row["earliest_ms"] - row["change_ms"]
        kept = row["action"] == ADD and bool(was)  # made by a client that unlocks nothing
        if row["change_ms"] != epoch["from_ms"] or waits not in (0, KEPT_LOCK_MS[0] * kept):
            yield f"change_ms and earliest_ms should be {epoch['from_ms']} in {dict(row)}"
        if row["latest_ms"] < row["earliest_ms"]:
            yield f"latest_ms precedes earliest_ms in {dict(row)}"
        if epoch["causes"] and row["cause"] != epoch["causes"][0]:
            yield f"cause should be {epoch['causes'][0]} in {dict(row)}"
        if row["kind"] not in MOVE_KINDS.get(row["action"], ()):
            yield f"{row['action']} of kind {row['kind']}"
        elif (
            row["action"] == ADD
            and row["kind"] != INITIAL
            and (row["kind"] == NEW) == bool(was)
            and (was or instant.were_known)
        ):
            yield f"kind {row['kind']}, but {sorted(was)} held the queue before, in {dict(row)}"
        if departed and (row["kind"] != FORCED or row["latest_ms"] != row["change_ms"]):
            yield f"a departed member's DROP must be FORCED and immediate, unlike {dict(row)}"


def _start_errors(instant: Instant) -> Iterator[str]:
    """Check that each ADD that is not INITIAL has a start within its bounds."""
    moment = ("change_ms", "earliest_ms", "latest_ms")
    added = {
        (queue_of(row), row["client_id"]): [row[column] for column in moment]
        for row in instant.diffs
        if row["action"] == ADD and row["kind"] != INITIAL
    }
    started = {(queue_of(row), row["client_id"]) for row in instant.pull_starts}
    for queue, client_id in added.keys() - started:
        yield f"{client_id!r} adds {queue}, but there is no pull_starts row"
    for row in instant.pull_starts:
        expected = added.get((queue_of(row), row["client_id"]))
        if expected is None:
            yield f"a pull_starts row without an ADD: {dict(row)}"
        elif expected != [row[column] for column in moment]:
            yield f"the ADD's moments ({expected}) differ from {dict(row)}"
        start, low, high = (row[f"start_offset{end}"] for end in ("", "_low", "_high"))
        bounds = [offset for offset in (low, start, high) if offset is not None]
        if bounds != sorted(bounds):
            yield f"expected low <= start <= high: {dict(row)}"
        if row["status"] not in (OK, FAILED, UNKNOWN) or (row["status"] == OK) != (
            start is not None and row["rule"] is not None
        ):
            yield f"status {row['status']} with start {start} and rule {row['rule']}"
        if (row["status"] == FAILED) != (row["rule"] == QUERY_FAILED):
            yield f"status {row['status']} with rule {row['rule']}"
        if row["skipped"] is not None and row["skipped"] < 0:
            yield f"skipped is negative: {dict(row)}"


def _load_errors(instant: Instant) -> Iterator[str]:
    """Check that each known subscriber has a load, which is that of one of its processes."""
    processes = instant.processes
    loads = Counter(row["client_id"] for row in instant.loads)
    unknown = {row["client_id"] for row in instant.members if not share_known(row)}
    unknown |= {client_id for client_id in instant.doubted if client_id not in loads}
    expected = Counter(dict.fromkeys(processes.keys() - unknown, 1))
    if (
        Counter({client_id: n for client_id, n in loads.items() if client_id not in unknown})
        != expected
    ):
        yield f"consumer_load has {sorted(loads.items())}; members are {sorted(processes)}"
    held: dict[str | None, list[MessageQueue]] = defaultdict(list)
    for queue, holders in instant.holders.items():
        for client_id in holders:
            held[client_id].append(queue)
    suspended = {(row["client_id"], row["suspended"]) for row in instant.members}
    for row in instant.loads:
        client_id, queues = row["client_id"], held[row["client_id"]]
        plain = [queue for queue in queues if not is_retry_topic(queue.topic)]
        most = {
            "queues": len(plain),
            "retry_queues": len(queues) - len(plain),
            "topics": len({queue.topic for queue in plain}),
        }
        for column, value in most.items():
            # Processes of the same id may hold different queues; the row describes one process.
            exact = processes[client_id] == 1
            if row[column] != value if exact else row[column] > value:
                yield f"load of {client_id!r}: {column} is {row[column]}; ownership gives {value}"
        for error in _derived_errors(CONSUMER_LOAD, row):
            yield f"load of {client_id!r}: {error}"
        if (client_id, row["suspended"]) not in suspended:
            yield f"load of {client_id!r}: suspended is {row['suspended']}, but no member is"


def _metric_errors(instant: Instant) -> Iterator[str]:
    """Check that each topic and the group have a metrics row within the bounds of other tables."""
    whole = [row for row in instant.metrics if row["topic"] is None]
    topics = [row for row in instant.metrics if row["topic"] is not None]
    if len(whole) != 1:
        yield f"group_metrics has {len(whole)} rows for the whole group"
    for row in whole:
        for column in ("queues", "moved", "voluntary_moves"):
            total = sum(topic[column] for topic in topics)
            if row[column] != total:
                yield f"group_metrics: {column} is {row[column]}; its topics have {total}"
    for row in instant.metrics:
        added = [
            diff
            for diff in instant.diffs
            if diff["action"] == ADD
            and not is_retry_topic(diff["topic"])
            and row["topic"] in (None, diff["topic"])
        ]
        voluntary = {queue_of(diff) for diff in added if diff["kind"] == VOLUNTARY}
        if row["moved"] != len({queue_of(diff) for diff in added}):
            yield f"group_metrics: moved contradicts diffs in {dict(row)}"
        if row["voluntary_moves"] != len(voluntary):
            yield f"group_metrics: voluntary_moves contradicts diffs in {dict(row)}"
        shared = row["topic"] is None and bool(instant.epoch["pop_queues"])
        all_known = instant.all_known or (bool(instant.doubted) and row["peak_ratio"] is not None)
        errors = _range_errors(row, shared=shared, all_known=all_known)
        yield from (f"group_metrics: {error} in {dict(row)}" for error in errors)


def _range_errors(row: Row, *, shared: bool, all_known: bool) -> Iterator[str]:
    """Check the figures of a row that hold under any strategy.

    With ``shared``, members without owned queues may have shared ones. With ``all_known``, each
    member's subscriptions are known.
    """
    members, queues, most, least = (
        row[column] for column in ("members", "queues", "max_queues", "min_queues")
    )
    if not 0 <= least <= most or not 0 <= row["idle_members"] <= members:
        yield "min_queues, max_queues or idle_members is out of range"
    lacking = members > 0 and least == 0
    if lacking != (row["idle_members"] > 0) and not (lacking and (shared or not all_known)):
        yield "idle_members contradicts min_queues"
    if row["stickiness"] is not None and not 0 <= row["stickiness"] <= 1:
        yield "stickiness is not between 0 and 1"
    peak = most * members / queues if members and queues and all_known else None
    if row["peak_ratio"] != peak:
        yield f"peak_ratio should be {peak}"
    minimum = row["minimum_moves"]
    if minimum is not None and not 0 <= minimum <= queues:
        yield "minimum_moves is not between 0 and queues"
    yield from _derived_errors(GROUP_METRICS, row)


def _derived_errors(table: Table, row: Row) -> Iterator[str]:
    """Check the columns that derive from others in their row."""
    made = table.with_derived(row)
    for name in table.derived:
        if row[name] != made[name]:
            yield f"{name} should be {made[name]}"


def _minimum_errors(instant: Instant) -> Iterator[str]:
    """Check that a balanced result of processes with different ids moves at least the minimum."""
    members = instant.members
    if not (
        {row["strategy"] for row in members} <= set(BALANCED_STRATEGIES)
        and len({row["strategy"] for row in members}) == 1
        and all(row["message_model"] == CLUSTERING and not row["suspended"] for row in members)
        and len(instant.processes) == len(members)
    ):
        return
    for row in instant.metrics:
        if row["minimum_moves"] is not None and row["moved"] < row["minimum_moves"]:
            yield f"group_metrics: moved is less than the minimum in {dict(row)}"


def _state_errors(instant: Instant) -> Iterator[str]:
    """Check that a row of queue_states differs from the usual state of a held queue."""
    shared = {row["topic"] for row in instant.pop_metrics}
    for row in instant.states:
        queue = queue_of(row)
        if queue.topic in shared:
            if not row["readable"] or row["channel_ids"]:
                yield f"queue_states: only readable queues of a shared topic have rows: {dict(row)}"
        elif None in instant.holders.get(queue, {None: 0}):
            yield f"queue_states: {queue} has no holder"
        elif row["readable"] and not row["channel_ids"]:
            yield f"queue_states: {queue} has the usual state, which needs no row"


def _readable_errors(instant: Instant) -> Iterator[str]:
    """Check the readable queues of queue_states against the counts."""
    unread = {queue_of(row) for row in instant.states if not row["readable"]}
    readable = len(instant.holders.keys() - unread)
    if instant.all_known and readable != instant.epoch["queues"]:
        yield f"queues is {instant.epoch['queues']}; queue_states has {readable} readable queues"
    of_topic = Counter(row["topic"] for row in instant.states)
    for row in instant.pop_metrics:
        topic, queues = row["topic"], row["queues"]
        if of_topic[topic] != queues:
            yield f"queue_states: {topic!r} has {of_topic[topic]} queues; pop_metrics has {queues}"


def _channel_errors(instant: Instant) -> Iterator[str]:
    """Check that the processes in queue_states exist and hold the queues of their client id."""
    several = {client_id for client_id, count in instant.processes.items() if count > 1}
    ids: dict[str | None, set[str]] = defaultdict(set)
    for row in instant.members:
        if row["client_id"] in several:
            ids[row["channel_id"]].add(row["client_id"])
    channels = {queue_of(row): row["channel_ids"] for row in instant.states}
    for queue, holders in instant.holders.items():
        listed = channels.get(queue, [])
        wrong = [channel for channel in listed if not ids[channel] & holders.keys()]
        if wrong or bool(listed) != bool(several & holders.keys()):
            yield f"queue_states: {queue} is held by {dict(holders)}; channels {listed}"
