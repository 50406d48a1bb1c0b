"""All ledger rows of one group: the oracle that the kernels are compared with."""

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.ledger import GROUP_METRICS
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.routes import minimum_moves
from rebalance_core.replay import intervals
from rebalance_core.replay.changes import (
    ADD,
    VOLUNTARY,
    KeptLocks,
    OwnerChange,
    changes_of,
    holders_by_queue,
)
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_history
from rebalance_core.replay.masters import MasterOutages
from rebalance_core.replay.pop_tables import client_reaches, pop_metric_rows
from rebalance_core.replay.pull_starts import PullStarts
from rebalance_core.replay.settle import Holdings, StrategyKey
from rebalance_core.strategies import AllocationStrategy

# Movement beside balance, per epoch, per topic and for the whole group; no retry topics.

Row = dict[str, Any]
Held: TypeAlias = dict[str, set[MessageQueue]]
"""Queues by client id."""


def metric_rows(epoch: Epoch, changes: list[OwnerChange]) -> list[Row]:
    """One row per topic of the group and, with topic None, one for the whole group."""
    topics = [topic for topic in epoch.readable if not is_retry_topic(topic)]
    before, after = _held(epoch.before), _held(epoch.holdings)
    present = {client_id for client_id, _ in epoch.members}
    minima = {topic: _minimum(epoch, topic, present, before.get(topic, {})) for topic in topics}
    unknown = _of_unknown_share(epoch)
    known = [minimum for minimum in minima.values() if minimum is not None]
    total = sum(known) if topics and len(known) == len(minima) else None
    scopes: list[tuple[str | None, list[str], int | None]] = [
        *((topic, [topic], minima[topic]) for topic in topics),
        (None, topics, total),
    ]
    sharing = frozenset(client_id for client_id, reach in client_reaches(epoch).items()
                        if reach.queues)  # fmt: skip
    added: dict[str, list[OwnerChange]] = {}
    for change in changes:
        if change.action == ADD:
            added.setdefault(change.queue.topic, []).append(change)
    comparable = epoch.all_known and not epoch.doubtful_before
    rows = []
    for topic, scope, minimum in scopes:
        was, now = ([held.get(t, {}) for t in scope] for held in (before, after))
        rows.append(
            {"epoch": epoch.number, "topic": topic}
            | _moves([change for t in scope for change in added.get(t, ())], minimum)
            | {"stickiness": _stickiness(was, now) if comparable else None}
            | _loads(epoch, scope, now, unknown, sharing if topic is None else frozenset())
        )
    return [GROUP_METRICS.with_derived(row) for row in rows]


def _moves(added: list[OwnerChange], minimum: int | None) -> Row:
    return {
        "moved": len({change.queue for change in added}),
        "voluntary_moves": len({c.queue for c in added if c.kind == VOLUNTARY}),
        "minimum_moves": minimum,
    }


def _of_unknown_share(epoch: Epoch) -> set[str]:
    """Client ids of members of which it is not known which queues they take."""
    unknown = {client_id for client_id, _ in epoch.members.keys() & epoch.doubtful.keys()}
    for kind in epoch.view.kinds:
        if not kind.example.share_known:
            unknown.update(client_id for client_id, _ in kind.keys)
    return unknown


def _loads(
    epoch: Epoch, topics: list[str], held: list[Held], unknown: set[str], sharing: frozenset[str]
) -> Row:
    """Queues by client; ``sharing``: clients that shared queues keep busy.

    It is not known whether a client whose share is ``unknown`` is idle, or has the fewest.
    """
    scope = set(topics)
    queues = sum(len(epoch.readable[topic]) for topic in topics)
    subscribed = (kind for kind in epoch.view.kinds if kind.example.subscriptions & scope)
    clients = {client_id for kind in subscribed for client_id, _ in kind.keys}
    loads: dict[str, int] = {}
    for of_topic in held:
        for client_id in of_topic.keys() & clients:
            loads[client_id] = loads.get(client_id, 0) + len(of_topic[client_id])
    without = clients - loads.keys() - unknown
    most = max(loads.values(), default=0)
    least = 0 if without else min(loads.values(), default=0)
    return {
        "queues": queues,
        "members": len(clients),
        "max_queues": most,
        "min_queues": least,
        "peak_ratio": most * len(clients) / queues
        if queues and clients and epoch.all_known
        else None,
        "idle_members": len(without - sharing),
    }


def _held(holdings: Holdings) -> dict[str, Held]:
    """By topic: queues that some process of each client id holds."""
    held: dict[str, Held] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            held.setdefault(queue.topic, {}).setdefault(client_id, set()).add(queue)
    return held


def _minimum(epoch: Epoch, topic: str, present: set[str], before: Held) -> int | None:
    """Null where a balanced result is not what the group is after, or cannot reach."""
    members = [kind.example for kind in epoch.view.kinds]
    if (
        not members
        or topic in epoch.frozen_topics
        or any(m.message_model == BROADCASTING or not m.share_known for m in members)
        or any(
            queue.topic == topic
            for doubtful in (epoch.doubtful_before, epoch.doubtful)
            for queues in doubtful.values()
            for queue in queues
        )
        or len({m.subscriptions for m in members}) > 1
        or any(queue.broker_name in epoch.view.lockless for queue in epoch.readable[topic])
    ):
        return None
    queues = set(epoch.readable[topic])
    kept = [len(before[client_id] & queues) for client_id in before.keys() & present]
    return minimum_moves(len(queues), len(present), kept)


def _stickiness(before: list[Held], after: list[Held]) -> float | None:
    """Share of the queues held before that keep a holder; both by topic, in one order."""
    held = kept = 0
    for was, now in zip(before, after, strict=True):
        held += len(set().union(*was.values()))
        kept += len(set().union(*(queues & now.get(client_id, set())
                                  for client_id, queues in was.items())))  # fmt: skip
    return kept / held if held else None


UNKNOWN_MEMBER = "UNKNOWN_MEMBER"


def replay_group(
    history: GroupHistory,
    strategy_for: Callable[[StrategyKey], AllocationStrategy],
    *,
    include_retry_topics: bool = True,
    strategy_override: str | None = None,
) -> dict[str, list[Row]]:
    """Replay one group into rows of every ledger table (and ``rejected``), by table name.

    Arguments and errors as `GroupLedger`.
    """
    ledger = GroupLedger(
        history,
        strategy_for,
        include_retry_topics=include_retry_topics,
        strategy_override=strategy_override,
    )
    return {table: ledger.rows(table) for table in LEDGER_TABLES}


class GroupLedger:
    """One group replayed; its rows are made table by table, as they are asked for.

    Args:
        history: the group's events, settings and observations, in any order.
        strategy_for: (strategy text, client version) -> strategy.
        include_retry_topics: false leaves retry topics out of everything.
        strategy_override: strategy text that replaces the group's and every member's own.

    Raises:
        UsageError: a strategy text that does not parse.
    """

    def __init__(
        self,
        history: GroupHistory,
        strategy_for: Callable[[StrategyKey], AllocationStrategy],
        *,
        include_retry_topics: bool = True,
        strategy_override: str | None = None,
    ) -> None:
        self._history = history
        self._replay = replay_history(
            history,
            strategy_for,
            include_retry_topics=include_retry_topics,
            strategy_override=strategy_override,
        )

    def rows(self, table: str) -> list[Row]:
        """All rows of one ledger table."""
        if table == "rejected":
            return [rejected_row(event) for event in self._replay.unknown_members]
        make: Callable[[], list[Row]] = getattr(self, f"_{table}")
        history = self._history
        identity = {"cluster": history.cluster, "consumer_group": history.consumer_group}
        return [identity | row for row in make()]

    @cached_property
    def _changes(self) -> list[tuple[Epoch, list[OwnerChange]]]:
        ordered = self._history.settings.ordered
        changes = [(epoch, changes_of(epoch, ordered=ordered)) for epoch in self._replay.epochs]
        if not ordered:
            return changes
        locks = KeptLocks()
        return [(epoch, locks.waited(epoch, of_epoch)) for epoch, of_epoch in changes]

    def _epochs(self) -> list[Row]:
        masters = MasterOutages(self._history.events)
        return [
            _epoch_row(self._replay, epoch, changes)
            | {
                "masterless_queues": masters.masterless_queues(
                    epoch, self._replay.to_ms(epoch.number)
                )
            }
            for epoch, changes in self._changes
        ]

    def _ownership(self) -> list[Row]:
        return intervals.ownership_rows(self._replay)

    def _diffs(self) -> list[Row]:
        return [_diff_row(epoch, change) for epoch, changes in self._changes for change in changes]

    def _pull_starts(self) -> list[Row]:
        starts = PullStarts(self._history, self._changes)
        return [row for epoch, changes in self._changes for row in starts.rows(epoch, changes)]

    def _memberships(self) -> list[Row]:
        return intervals.membership_rows(self._replay)

    def _consumer_load(self) -> list[Row]:
        return intervals.load_rows(self._replay)

    def _group_metrics(self) -> list[Row]:
        return [row for epoch, changes in self._changes for row in metric_rows(epoch, changes)]

    def _pop_reach(self) -> list[Row]:
        return intervals.pop_reach_rows(self._replay)

    def _pop_metrics(self) -> list[Row]:
        return [row for epoch in self._replay.epochs for row in pop_metric_rows(epoch)]

    def _queue_states(self) -> list[Row]:
        return intervals.queue_state_rows(self._replay)


def _epoch_row(replay: Replay, epoch: Epoch, changes: list[OwnerChange]) -> Row:
    holders = holders_by_queue(epoch.holdings)
    readable = [queue for queues in epoch.readable.values() for queue in queues]
    added = sum(change.action == ADD for change in changes)
    return {
        "epoch": epoch.number,
        "from_ms": epoch.from_ms,
        "to_ms": replay.to_ms(epoch.number),
        "causes": list(epoch.causes),
        "members": len(epoch.members),
        "distinct_members": len({client_id for client_id, _ in epoch.members}),
        "queues": len(readable),
        "added": added,
        "dropped": len(changes) - added,
        "orphaned": sum(queue not in holders and queue not in epoch.unsure for queue in readable),
        "shared": intervals.count_shared(holders.values()),
        "status": epoch.status,
        "transient": replay.is_transient(epoch),
        "pop_queues": sum(len(shared.queues) for shared in epoch.shared.values()),
    }


def _diff_row(epoch: Epoch, change: OwnerChange) -> Row:
    return {
        "epoch": epoch.number,
        "change_ms": epoch.from_ms,
        "earliest_ms": change.earliest_ms,
        "latest_ms": change.latest_ms,
        **change.queue._asdict(),
        "action": change.action,
        "client_id": change.client_id,
        "other_client_id": change.other_client_id,
        "kind": change.kind,
        "cause": epoch.causes[0],
    }


def rejected_row(event: Event) -> Row:
    """The row of ``rejected`` for an event that names an unknown member."""
    process = f"{event.client_id!r} (channel {event.channel_id!r})"
    message = (
        f"{event.event_type} of {process}, which is not in the group at {event.event_ms}; "
        "expected a CONSUMER_JOIN of the same client_id and channel_id before it"
    )
    return {
        "table_name": "cluster_events",
        "source": event.source,
        "raw": event.raw or json.dumps({"event_ms": event.event_ms, "sequence": event.sequence}),
        "issues": [{"code": UNKNOWN_MEMBER, "message": message}],
    }
