"""All ledger rows of a group: the oracle with which the kernels are compared."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.ledger import UNKNOWN_MEMBER
from rebalance_core.model.events import Event
from rebalance_core.replay import intervals
from rebalance_core.replay.changes import ADD, OwnerChange, changes_of, holders_by_queue
from rebalance_core.replay.history import Epoch, GroupHistory, Replay, replay_history
from rebalance_core.replay.kept_locks import KeptLocks
from rebalance_core.replay.masters import MasterOutages
from rebalance_core.replay.metrics import metric_rows
from rebalance_core.replay.pop_starts import PopStarts
from rebalance_core.replay.pop_tables import pop_metric_rows
from rebalance_core.replay.pull_starts import PullStarts
from rebalance_core.replay.topic_shares import StrategyKey
from rebalance_core.strategies import AllocationStrategy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RejectedRow

Row: TypeAlias = Mapping[str, object]


def replay_group(
    history: GroupHistory,
    strategy_for: Callable[[StrategyKey], AllocationStrategy],
    *,
    include_retry_topics: bool = True,
    strategy_override: str | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """Replay a group into rows of every ledger table (and ``rejected``), by table name.

    Arguments and errors are those of `GroupLedger`.
    """
    ledger = GroupLedger(
        history,
        strategy_for,
        include_retry_topics=include_retry_topics,
        strategy_override=strategy_override,
    )
    return {table: [{**row} for row in ledger.rows(table)] for table in LEDGER_TABLES}


class GroupLedger:
    """The ledger of a replayed group; each table's rows are made on demand.

    Args:
        history: the group's events, settings and observations, in any order.
        strategy_for: (strategy text, client version) -> strategy.
        include_retry_topics: False leaves retry topics out of everything.
        strategy_override: a strategy text that replaces the group's and every member's own.

    Raises:
        UsageError: a strategy text does not parse.
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

    def rows(self, table: str) -> Sequence[Row]:
        """Return all rows of a ledger table."""
        if table == "rejected":
            return [{**rejected_row(event)} for event in self._replay.unknown_members]
        make: Callable[[], Sequence[Row]] = getattr(self, f"_{table}")
        history = self._history
        identity = {"cluster": history.cluster, "consumer_group": history.consumer_group}
        return [{**identity, **row} for row in make()]

    @cached_property
    def _changes(self) -> list[tuple[Epoch, list[OwnerChange]]]:
        ordered = self._history.settings.ordered
        changes = [(epoch, changes_of(epoch, ordered=ordered)) for epoch in self._replay.epochs]
        if not ordered:
            return changes
        locks = KeptLocks()
        return [(epoch, locks.waited(epoch, of_epoch)) for epoch, of_epoch in changes]

    def _epochs(self) -> Sequence[Row]:
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

    def _ownership(self) -> Sequence[Row]:
        return intervals.ownership_rows(self._replay)

    def _diffs(self) -> Sequence[Row]:
        return [_diff_row(epoch, change) for epoch, changes in self._changes for change in changes]

    def _pull_starts(self) -> Sequence[Row]:
        starts = PullStarts(self._history, self._changes)
        return [row for epoch, changes in self._changes for row in starts.rows(epoch, changes)]

    def _memberships(self) -> Sequence[Row]:
        return intervals.membership_rows(self._replay)

    def _consumer_load(self) -> Sequence[Row]:
        return intervals.load_rows(self._replay)

    def _group_metrics(self) -> Sequence[Row]:
        return [row for epoch, changes in self._changes for row in metric_rows(epoch, changes)]

    def _pop_reach(self) -> Sequence[Row]:
        return intervals.pop_reach_rows(self._replay)

    def _pop_starts(self) -> Sequence[Row]:
        starts = PopStarts(self._history)
        return [row for epoch in self._replay.epochs for row in starts.rows(epoch)]

    def _pop_metrics(self) -> Sequence[Row]:
        return [row for epoch in self._replay.epochs for row in pop_metric_rows(epoch)]

    def _queue_states(self) -> Sequence[Row]:
        return intervals.queue_state_rows(self._replay)


def _epoch_row(replay: Replay, epoch: Epoch, changes: list[OwnerChange]) -> dict[str, object]:
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


def rejected_row(event: Event) -> "RejectedRow":
    """Return the row of ``rejected`` for an event that names an unknown member."""
    process = f"{event.client_id!r} (channel {event.channel_id!r})"
    message = (
        f"{event.event_type} of {process}, which is not a member of the group at "
        f"{event.event_ms}; expected an earlier CONSUMER_JOIN of the same client_id and "
        "channel_id"
    )
    return {
        "table_name": "cluster_events",
        "source": event.source,
        "raw": event.raw or json.dumps({"event_ms": event.event_ms, "sequence": event.sequence}),
        "issues": [{"code": UNKNOWN_MEMBER, "message": message}],
    }
