"""What must be true of every ledger, whichever engine made it: a public check.

Nothing in the package calls it; tests of both engines do, and so can whoever makes a ledger.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeAlias

from rebalance_core.contracts import SIMULATED_TABLES, Table
from rebalance_core.contracts.ledger import CONSUMER_LOAD, GROUP_METRICS
from rebalance_core.model.clients import KEPT_LOCK_MS, profile_of_row
from rebalance_core.model.group_settings import CLUSTERING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.model.verdicts import EMPTY, FAILED, FROZEN, OK, SETTLED, UNKNOWN
from rebalance_core.protocol.start_offset import QUERY_FAILED
from rebalance_core.replay.changes import ADD, DROP, FORCED, INITIAL, NEW, VOLUNTARY
from rebalance_core.strategies.pop import WHOLE_BROKER

# What must hold among the ledger rows of one group in one epoch (see `check`).

Row: TypeAlias = Mapping[str, Any]
Holders: TypeAlias = dict[MessageQueue, dict[str | None, int]]
Move: TypeAlias = tuple[MessageQueue, str, str]
"""(queue, action, client id)"""

BALANCED_STRATEGIES = ("AVG", "AVG_BY_CIRCLE")  # sizes differ by at most one, whatever the input
OPPOSITE = {ADD: DROP, DROP: ADD}
KINDS = {ADD: (INITIAL, NEW, FORCED, VOLUNTARY), DROP: (FORCED, VOLUNTARY)}


def share_known(member: Row) -> bool:
    """False for a row of memberships if nobody can say which queues the process takes."""
    known = profile_of_row(member).share_known(member["strategy"])
    return member["subscriptions"] is not None and (known or member["message_model"] != CLUSTERING)


@dataclass(frozen=True, slots=True)
class Instant:
    """All rows of one group that speak about one epoch, and who held what before and since."""

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
    """What each member of the epoch before subscribes was known, and in all before."""

    @property
    def all_known(self) -> bool:
        """True if it is known which queues each member takes."""
        return all(map(share_known, self.members)) and not self.doubted

    @property
    def doubted(self) -> set[str]:
        """Clients whose queues may depend on rules that were only read."""
        return {row["client_id"] for row in self.members if profile_of_row(row).may_be_doubtful}

    @property
    def processes(self) -> Counter[str]:
        """Live processes of each client id."""
        return Counter(row["client_id"] for row in self.members)


def epoch_errors(instant: Instant) -> Iterator[str]:
    """One sentence for each thing about this epoch that cannot be."""
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
    """The queue a row speaks about."""
    return MessageQueue(row["topic"], row["broker_name"], row["queue_id"])


def _owner_errors(instant: Instant) -> Iterator[str]:
    """A queue has an owner or none, never both; holders are processes that are there."""
    processes = instant.processes
    for queue, holders in instant.holders.items():
        if None in holders and len(holders) > 1:
            yield f"{queue} has an owner and none at once"
        for client_id, count in holders.items():
            if client_id is None:
                if count != 0:
                    yield f"{queue} has no owner, yet {count} holders"
            elif not 1 <= count <= processes[client_id]:
                living = processes[client_id]
                yield f"{queue} has {count} holders {client_id!r}; {living} such processes live"


def _subscriber_errors(instant: Instant) -> Iterator[str]:
    """Who holds a queue subscribes its topic, or is suspended and keeps what it had."""
    topics: dict[str | None, set[str]] = defaultdict(set)
    suspended = {row["client_id"] for row in instant.members if row["suspended"]}
    for row in instant.members:
        topics[row["client_id"]].update(row["subscriptions"] or ())
    for queue, holders in instant.holders.items():
        if not is_retry_topic(queue.topic):
            for client_id in holders.keys() - suspended - {None}:
                if queue.topic not in topics[client_id]:
                    yield f"{client_id!r} holds {queue} and does not subscribe the topic"


def _count_errors(instant: Instant) -> Iterator[str]:
    """The counts of the epochs row are those of the other tables."""
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
            yield f"{column} is {epoch[column]}; the rows say {value}"
    if epoch["status"] not in ((SETTLED, FROZEN) if instant.members else (EMPTY,)):
        yield f"status {epoch['status']} with {len(instant.members)} members"
    if not epoch["causes"] or len(set(epoch["causes"])) < len(epoch["causes"]):
        yield f"causes {epoch['causes']} are empty or repeated"
    if epoch["transient"] and epoch["to_ms"] is None:
        yield "an open epoch is transient"


def _tiling_errors(instant: Instant) -> Iterator[str]:
    """Every readable queue has a row, unless a member of unknown subscriptions may hold it.

    Without freeze, suspension and CONFIG nothing else has.
    """
    rows, readable = len(instant.holders), instant.epoch["queues"]
    if rows < readable and instant.all_known:
        yield f"{readable} queues are readable, ownership has rows for {rows}: a gap"
    only_readable = instant.epoch["status"] != FROZEN and not any(
        row["suspended"] or row["strategy"].startswith("CONFIG") for row in instant.members
    )
    if only_readable and rows > readable:
        yield f"{readable} queues are readable, yet ownership has rows for {rows}"


def _moves(instant: Instant) -> set[Move]:
    """A rise of holders is an ADD, a fall a DROP, whatever the size."""
    moves: set[Move] = set()
    for queue in instant.before.keys() | instant.holders.keys():
        was, now = instant.before.get(queue, {}), instant.holders.get(queue, {})
        for client_id in was.keys() | now.keys():
            rise = now.get(client_id, 0) - was.get(client_id, 0)
            if client_id is not None and rise:
                moves.add((queue, ADD if rise > 0 else DROP, client_id))
    return moves


def _diff_errors(instant: Instant) -> Iterator[str]:
    """Diffs are the difference of ownership between two epochs, and nothing more."""
    expected = _moves(instant)
    actual = {(queue_of(row), row["action"], row["client_id"]) for row in instant.diffs}
    missing = expected - actual
    for queue, action, client_id in missing:
        if client_id in instant.doubted:
            continue
        yield f"ownership changes, but diffs have no {action} of {queue} by {client_id!r}"
    for queue, action, client_id in actual - expected:
        yield f"diffs have {action} of {queue} by {client_id!r}, but ownership does not change so"
    clients: dict[tuple[MessageQueue, str], list[str]] = defaultdict(list)
    for queue, action, client_id in expected - missing:
        clients[queue, action].append(client_id)
    for row in instant.diffs:
        opposite = clients[queue_of(row), OPPOSITE.get(row["action"], "")]
        only = opposite[0] if len(opposite) == 1 else None
        if row["other_client_id"] != only:
            yield f"other_client_id should be {only!r} in {dict(row)}"


def _kind_errors(instant: Instant) -> Iterator[str]:
    """Moments, cause and kind of each diff."""
    epoch, processes = instant.epoch, instant.processes
    added = [row["kind"] for row in instant.diffs if row["action"] == ADD]
    if INITIAL in added and set(added) != {INITIAL}:
        yield "some ADDs are INITIAL and others are not"
    for row in instant.diffs:
        was = {client_id for client_id in instant.before.get(queue_of(row), {}) if client_id}
        departed = row["action"] == DROP and row["client_id"] not in processes
        waits = row["earliest_ms"] - row["change_ms"]
        kept = row["action"] == ADD and bool(was)  # by a client that unlocks nothing
        if row["change_ms"] != epoch["from_ms"] or waits not in (0, KEPT_LOCK_MS[0] * kept):
            yield f"change_ms and earliest_ms should be {epoch['from_ms']} in {dict(row)}"
        if row["latest_ms"] < row["earliest_ms"]:
            yield f"latest_ms lies before earliest_ms in {dict(row)}"
        if epoch["causes"] and row["cause"] != epoch["causes"][0]:
            yield f"cause should be {epoch['causes'][0]} in {dict(row)}"
        if row["kind"] not in KINDS.get(row["action"], ()):
            yield f"{row['action']} of kind {row['kind']}"
        elif (
            row["action"] == ADD
            and row["kind"] != INITIAL
            and (row["kind"] == NEW) == bool(was)
            and (was or instant.were_known)
        ):
            yield f"kind {row['kind']}, but {sorted(was)} held the queue before, in {dict(row)}"
        if departed and (row["kind"] != FORCED or row["latest_ms"] != row["change_ms"]):
            yield f"a departed member's DROP is FORCED and over at once, unlike {dict(row)}"


def _start_errors(instant: Instant) -> Iterator[str]:
    """One start per ADD that is not INITIAL, inside its bounds."""
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
            yield f"no ADD but a pull_starts row: {dict(row)}"
        elif expected != [row[column] for column in moment]:
            yield f"the ADD has other moments ({expected}) than {dict(row)}"
        start, low, high = (row[f"start_offset{end}"] for end in ("", "_low", "_high"))
        known = [offset for offset in (low, start, high) if offset is not None]
        if known != sorted(known):
            yield f"not low <= start <= high: {dict(row)}"
        if row["status"] not in (OK, FAILED, UNKNOWN) or (row["status"] == OK) != (
            start is not None and row["rule"] is not None
        ):
            yield f"status {row['status']} with start {start} and rule {row['rule']}"
        if (row["status"] == FAILED) != (row["rule"] == QUERY_FAILED):
            yield f"status {row['status']} with rule {row['rule']}"
        if row["skipped"] is not None and row["skipped"] < 0:
            yield f"skipped is negative: {dict(row)}"


def _load_errors(instant: Instant) -> Iterator[str]:
    """One load for each distinct client id that is known to subscribe; that of one process."""
    processes = instant.processes
    loads = Counter(row["client_id"] for row in instant.loads)
    unknown = {row["client_id"] for row in instant.members if not share_known(row)}
    unknown |= {one for one in instant.doubted if one not in loads}
    expected = Counter(dict.fromkeys(processes.keys() - unknown, 1))
    if Counter({one: n for one, n in loads.items() if one not in unknown}) != expected:
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
            # Processes of one id may hold different queues; the row is one of them.
            exact = processes[client_id] == 1
            if row[column] != value if exact else row[column] > value:
                yield f"load of {client_id!r}: {column} is {row[column]}; ownership says {value}"
        for error in _derived_errors(CONSUMER_LOAD, row):
            yield f"load of {client_id!r}: {error}"
        if (client_id, row["suspended"]) not in suspended:
            yield f"load of {client_id!r}: suspended is {row['suspended']}; no such member"


def _metric_errors(instant: Instant) -> Iterator[str]:
    """One row a topic and one for the group, each within what the other tables allow."""
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
            yield f"group_metrics: moved does not agree with diffs in {dict(row)}"
        if row["voluntary_moves"] != len(voluntary):
            yield f"group_metrics: voluntary_moves does not agree with diffs in {dict(row)}"
        shared = row["topic"] is None and bool(instant.epoch["pop_queues"])
        all_known = instant.all_known or (bool(instant.doubted) and row["peak_ratio"] is not None)
        errors = _range_errors(row, shared=shared, all_known=all_known)
        yield from (f"group_metrics: {error} in {dict(row)}" for error in errors)


def _range_errors(row: Row, *, shared: bool, all_known: bool) -> Iterator[str]:
    """Check the figures of one row that hold whatever the strategy.

    ``shared``: members without an own queue may have shared ones. ``all_known``: what each member
    subscribes is.
    """
    members, queues, most, least = (
        row[column] for column in ("members", "queues", "max_queues", "min_queues")
    )
    if not 0 <= least <= most or not 0 <= row["idle_members"] <= members:
        yield "min_queues, max_queues or idle_members out of range"
    lacking = members > 0 and least == 0
    if lacking != (row["idle_members"] > 0) and not (lacking and (shared or not all_known)):
        yield "idle_members and min_queues disagree"
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
    """Check columns that follow from others of their row."""
    made = table.with_derived(row)
    for name in table.derived:
        if row[name] != made[name]:
            yield f"{name} should be {made[name]}"


def _minimum_errors(instant: Instant) -> Iterator[str]:
    """A balanced result of processes with different ids never moves less than the minimum."""
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
            yield f"group_metrics: moved less than the minimum in {dict(row)}"


def _state_errors(instant: Instant) -> Iterator[str]:
    """A row of queue_states says something that is not so of all queues with a holder."""
    shared = {row["topic"] for row in instant.pop_metrics}
    for row in instant.states:
        queue = queue_of(row)
        if queue.topic in shared:
            if not row["readable"] or row["channel_ids"]:
                yield f"queue_states: of a shared topic only what can be read is told: {dict(row)}"
        elif None in instant.holders.get(queue, {None: 0}):
            yield f"queue_states: nobody holds {queue}"
        elif row["readable"] and not row["channel_ids"]:
            yield f"queue_states: nothing is odd about {queue}"


def _readable_errors(instant: Instant) -> Iterator[str]:
    """By queue_states as many queues can be read as the counts say."""
    unread = {queue_of(row) for row in instant.states if not row["readable"]}
    readable = len(instant.holders.keys() - unread)
    if instant.all_known and readable != instant.epoch["queues"]:
        yield f"queues is {instant.epoch['queues']}; by queue_states {readable} can be read"
    of_topic = Counter(row["topic"] for row in instant.states)
    for row in instant.pop_metrics:
        topic, queues = row["topic"], row["queues"]
        if of_topic[topic] != queues:
            yield f"queue_states: {topic!r} has {of_topic[topic]} queues; pop_metrics has {queues}"


def _channel_errors(instant: Instant) -> Iterator[str]:
    """The processes of queue_states are there, and hold what their client id holds."""
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


# What must hold in one epoch among the rows about topics that members share.


def sharing_errors(instant: Instant) -> Iterator[str]:
    """One sentence for each thing about this epoch's shared topics that cannot be."""
    for check in (
        _topic_errors,
        _reach_errors,
        _pop_metric_errors,
        _exact_errors,
        _shared_load_errors,
    ):
        yield from check(instant)


def _topic_errors(instant: Instant) -> Iterator[str]:
    """A topic is shared, which pop_metrics says, or it has owners."""
    shared = {row["topic"] for row in instant.pop_metrics}
    owned = {queue.topic for queue in instant.holders}
    measured = {row["topic"] for row in instant.metrics}
    reached = {row["topic"] for row in instant.reach}
    for topic in sorted(shared & (owned | measured)):
        yield f"topic {topic!r} is shared, yet ownership or group_metrics has it"
    for topic in sorted(reached - shared):
        yield f"pop_reach has topic {topic!r}, which is not shared"
    queues = sum(row["queues"] for row in instant.pop_metrics)
    if instant.epoch["pop_queues"] != queues:
        yield f"pop_queues is {instant.epoch['pop_queues']}; pop_metrics has {queues}"


def _reach_errors(instant: Instant) -> Iterator[str]:
    """Who reaches a queue is there; all queues of a broker, or single ones."""
    ids: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for row in instant.reach:
        ids[row["client_id"], row["topic"], row["broker_name"]].add(row["queue_id"])
        if row["client_id"] not in instant.processes:
            yield f"pop_reach: {row['client_id']!r} is no member"
    for (client_id, topic, broker), of_broker in ids.items():
        if WHOLE_BROKER in of_broker and len(of_broker) > 1:
            yield f"pop_reach: {client_id!r} has all queues of {topic!r} on {broker!r} and single"


def _pop_metric_errors(instant: Instant) -> Iterator[str]:
    """Check the figures of one topic that hold whatever is readable."""
    for row in instant.pop_metrics:
        subscribers = {
            m["client_id"] for m in instant.members if row["topic"] in (m["subscriptions"] or ())
        }
        clients = [row[f"{end}_clients_per_queue"] for end in ("min", "max")]
        queues = [row[f"{end}_queues_per_client"] for end in ("min", "max")]
        if row["clients"] != len(subscribers):
            yield f"pop_metrics: {len(subscribers)} clients subscribe, unlike {dict(row)}"
        if not 0 <= clients[0] <= clients[1] <= len(instant.processes):
            yield f"pop_metrics: clients per queue out of range in {dict(row)}"
        if not 0 <= queues[0] <= queues[1] <= row["queues"]:
            yield f"pop_metrics: queues per client out of range in {dict(row)}"
        if not 0 <= row["unreached"] <= row["queues"] or (
            row["queues"] > 0
            and ((row["unreached"] > 0) != (clients[0] == 0))
            | ((row["unreached"] == row["queues"]) != (clients[1] == 0))
        ):
            yield f"pop_metrics: unreached disagrees with the clients per queue in {dict(row)}"


def _exact_errors(instant: Instant) -> Iterator[str]:
    """Where every entry of a topic is a readable queue, the figures count the entries."""
    if instant.epoch["status"] != SETTLED or any(
        row["suspended"] or row["strategy"].startswith("CONFIG") for row in instant.members
    ):
        return
    for row in instant.pop_metrics:
        reach = [entry for entry in instant.reach if entry["topic"] == row["topic"]]
        if any(entry["queue_id"] == WHOLE_BROKER for entry in reach):
            continue
        clients = Counter((entry["broker_name"], entry["queue_id"]) for entry in reach)
        queues = Counter(entry["client_id"] for entry in reach)
        expected = {
            "max_clients_per_queue": max(clients.values(), default=0),
            "max_queues_per_client": max(queues.values(), default=0),
            "unreached": row["queues"] - len(clients),
        }
        for column, value in expected.items():
            if row[column] != value:
                yield f"pop_metrics: {column} should be {value} by pop_reach in {dict(row)}"


def _shared_load_errors(instant: Instant) -> Iterator[str]:
    """A load has no more shared queues than its client's entries stand for."""
    readable: Counter[str] = Counter({row["topic"]: row["queues"] for row in instant.pop_metrics})
    entries: dict[str, list[Row]] = defaultdict(list)
    for row in instant.reach:
        entries[row["client_id"]].append(row)
    for row in instant.loads:
        mine = entries[row["client_id"]]
        whole = {entry["topic"] for entry in mine if entry["queue_id"] == WHOLE_BROKER}
        single = Counter(entry["topic"] for entry in mine if entry["topic"] not in whole)
        most = sum(readable[topic] for topic in whole) + single.total()
        if not 0 <= row["shared_queues"] <= most:
            shared = row["shared_queues"]
            yield f"load of {row['client_id']!r}: {shared} shared queues; pop_reach has {most}"


# Every invariant of a simulated ledger, checked on its rows alone.
#
# Knows the contracts and nothing of how the rows were made, so it checks the replay, the kernels
# and a ledger read back from disk alike. What only the inputs can tell (which queue is readable,
# which window an event opens) is not checked here.

INTERVAL_TABLES = ("ownership", "memberships", "consumer_load", "pop_reach", "queue_states")
EPOCH_TABLES = ("diffs", "pull_starts", "group_metrics", "pop_metrics")


def check_ledger(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    """Say which invariants the ledger of one or many groups breaks; empty when it is sound.

    Args:
        tables: rows by table name as `replay_group` yields them; every simulated table is needed,
            others (``rejected``) are ignored.

    Returns:
        One sentence a violation. Rows that lack columns, and epochs that are not numbered 0, 1, 2 …
        hide the rest of what is wrong: nothing else can be looked up by them.

    Cost: rows + epochs x (queues + members) of each group.
    """
    malformed = [error for name in SIMULATED_TABLES for error in _column_errors(name, tables)]
    if malformed:
        return malformed
    errors = [error for name in SIMULATED_TABLES for error in _key_errors(name, tables[name])]
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for name in SIMULATED_TABLES:
        for row in tables[name]:
            group = groups.setdefault((row["cluster"], row["consumer_group"]), defaultdict(list))
            group[name].append(row)
    for (cluster, group_name), ledger in groups.items():
        errors += (f"{cluster}/{group_name}: {error}" for error in _group_errors(ledger))
    return errors


def _column_errors(name: str, tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    if name not in tables:
        yield f"table {name} is missing"
        return
    table = SIMULATED_TABLES[name]
    for row in tables[name]:
        if set(row) != set(table.column_names):
            odd = sorted(set(row) ^ set(table.column_names))
            yield f"{name}: columns {odd} are missing or unknown in {dict(row)}"
        else:
            nulls = [c.name for c in table.columns if not c.nullable and row[c.name] is None]
            if nulls:
                yield f"{name}: {nulls} must not be null in {dict(row)}"


def _key_errors(name: str, rows: Sequence[Row]) -> Iterator[str]:
    key = SIMULATED_TABLES[name].key
    counts = Counter(tuple(row[column] for column in key) for row in rows)
    for value, count in counts.items():
        if count > 1:
            yield f"{name}: {count} rows with the key {value}"


def _group_errors(ledger: dict[str, list[Row]]) -> Iterator[str]:
    epochs = sorted(ledger["epochs"], key=lambda row: row["epoch"])
    numbers = [row["epoch"] for row in epochs]
    if not epochs or numbers != list(range(len(epochs))):
        yield f"epochs are numbered {numbers}; expected 0, 1, 2 … without a gap"
        return
    yield from _time_errors(epochs)
    for name in INTERVAL_TABLES:
        yield from _interval_errors(name, ledger[name], epochs)
    yield from _overlap_errors(ledger)
    for name in EPOCH_TABLES:
        for row in ledger[name]:
            if not 0 <= row["epoch"] < len(epochs):
                yield f"{name}: epoch {row['epoch']} does not exist"
    for instant in _instants(ledger, epochs):
        for error in chain(epoch_errors(instant), sharing_errors(instant)):
            yield f"epoch {instant.epoch['epoch']}: {error}"


def _time_errors(epochs: list[Row]) -> Iterator[str]:
    for row, following in zip(epochs, [*epochs[1:], None], strict=True):
        expected = None if following is None else following["from_ms"]
        if row["to_ms"] != expected:
            yield f"epoch {row['epoch']} ends at {row['to_ms']}; expected {expected}"
        if expected is not None and not row["from_ms"] < expected:
            yield f"epoch {row['epoch'] + 1} does not begin after epoch {row['epoch']}"


def _interval_errors(name: str, rows: list[Row], epochs: list[Row]) -> Iterator[str]:
    """Each interval covers whole epochs and carries their times."""
    starts = {row["epoch"]: row["from_ms"] for row in epochs}
    for row in rows:
        start, end = row["from_epoch"], row["to_epoch"]
        if start not in starts or (end is not None and (end not in starts or end <= start)):
            yield f"{name}: epochs {start} to {end} do not exist or are empty: {dict(row)}"
        elif "from_ms" in row and (row["from_ms"], row["to_ms"]) != (
            starts[start],
            starts.get(end),
        ):
            yield (
                f"{name}: from_ms and to_ms are not those of epochs {start} and {end}: {dict(row)}"
            )


def _overlap_errors(ledger: dict[str, list[Row]]) -> Iterator[str]:
    """Rows of one identity follow each other, and touch only where something changes."""
    for name in INTERVAL_TABLES:
        table = SIMULATED_TABLES[name]
        identity = [column for column in table.key if column != "from_epoch"]
        values = [
            column
            for column in table.column_names
            if column not in ("from_epoch", "to_epoch", "from_ms", "to_ms")
        ]
        chains: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for row in ledger[name]:
            chains[tuple(row[column] for column in identity)].append(row)
        for who, of_identity in chains.items():
            of_identity.sort(key=lambda row: row["from_epoch"])
            for earlier, later in pairwise(of_identity):
                if earlier["to_epoch"] is None or earlier["to_epoch"] > later["from_epoch"]:
                    yield f"{name}: overlapping rows of {who} at epoch {later['from_epoch']}"
                elif earlier["to_epoch"] == later["from_epoch"] and all(
                    earlier[column] == later[column] for column in values
                ):
                    yield f"{name}: {who} is split at epoch {later['from_epoch']} for no reason"


def _instants(ledger: dict[str, list[Row]], epochs: list[Row]) -> Iterator[Instant]:
    by_epoch: dict[str, dict[int, list[Row]]] = {}
    for name in EPOCH_TABLES:
        by_epoch[name] = defaultdict(list)
        for row in ledger[name]:
            by_epoch[name][row["epoch"]].append(row)
    before: Holders = {}
    were_known = True
    active = (_active(ledger[name], len(epochs)) for name in INTERVAL_TABLES)
    for epoch, owned, members, loads, reach, states in zip(epochs, *active, strict=True):
        holders: Holders = defaultdict(dict)
        for row in owned:
            holders[queue_of(row)][row["client_id"]] = row["holders"]
        number = epoch["epoch"]
        yield Instant(
            epoch=epoch,
            members=members,
            loads=loads,
            diffs=by_epoch["diffs"][number],
            pull_starts=by_epoch["pull_starts"][number],
            metrics=by_epoch["group_metrics"][number],
            reach=reach,
            pop_metrics=by_epoch["pop_metrics"][number],
            states=states,
            before=before,
            holders=holders,
            were_known=were_known,
        )
        before = holders
        were_known = were_known and all(map(share_known, members))
        were_known = were_known and not any(profile_of_row(m).may_be_doubtful for m in members)


def _active(rows: list[Row], epochs: int) -> Iterator[list[Row]]:
    """For each epoch the intervals that cover it."""
    starting: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        starting[row["from_epoch"]].append(row)
    active: list[Row] = []
    for number in range(epochs):
        active = [row for row in active if row["to_epoch"] is None or number < row["to_epoch"]]
        active += starting[number]
        yield active
